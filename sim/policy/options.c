/* Options by name; see the header. */
#include "sim/policy/options.h"

#include <stdio.h>
#include <string.h>

static const char *const workspace_names[SN_WORKSPACE_COUNT] = {"none", "dynamic", "max"};
static const char *const allocator_names[SN_ALLOCATOR_COUNT] = {"pool", "cuda", "pytorch", "pytorch-expandable"};
static const char *const reuse_names[SN_REUSE_COUNT] = {"fenced", "free"};
static const char *const placement_names[SN_PLACEMENT_COUNT] = {"packed", "first_fit"};
static const char *const placement_words[SN_PLACEMENT_COUNT] = {"packed", "first-fit"};

/* The number of `text` among `names`; SN_BAD_USAGE, with all of them, where it is none. */
static sn_status parse_name(const char *option, const char *text, const char *const *names, uint32_t count,
                            uint32_t *found, sn_err *err) {
  char all[100] = "";
  for (*found = 0; *found < count; ++*found) {
    if (strcmp(text, names[*found]) == 0) return SN_OK;
    size_t used = strlen(all);
    snprintf(all + used, sizeof all - used, "%s%s", used ? ", " : "", names[*found]);
  }
  return sn_fail(err, SN_BAD_USAGE, "%s: \"%.40s\" is none of: %s", option, text, all);
}

const char *sn_workspace_name(sn_workspace workspace) {
  return workspace_names[workspace];
}

sn_status sn_workspace_parse(const char *text, sn_workspace *workspace, sn_err *err) {
  uint32_t found;
  sn_status status = parse_name("--workspace", text, workspace_names, SN_WORKSPACE_COUNT, &found, err);
  if (status == SN_OK) *workspace = (sn_workspace)found;
  return status;
}

const char *sn_allocator_name(sn_allocator allocator) {
  return allocator_names[allocator];
}

sn_status sn_allocator_parse(const char *text, sn_allocator *allocator, sn_err *err) {
  uint32_t found;
  sn_status status = parse_name("--allocator", text, allocator_names, SN_ALLOCATOR_COUNT, &found, err);
  if (status == SN_OK) *allocator = (sn_allocator)found;
  return status;
}

const char *sn_reuse_name(sn_reuse reuse) {
  return reuse_names[reuse];
}

sn_status sn_reuse_parse(const char *text, sn_reuse *reuse, sn_err *err) {
  uint32_t found;
  sn_status status = parse_name("--sharing", text, reuse_names, SN_REUSE_COUNT, &found, err);
  if (status == SN_OK) *reuse = (sn_reuse)found;
  return status;
}

const char *sn_placement_name(sn_placement placement) {
  return placement_names[placement];
}

sn_status sn_placement_parse(const char *text, sn_placement *placement, sn_err *err) {
  uint32_t found = SN_PLACEMENT_FIRST_FIT;
  bool result = strcmp(text, placement_names[found]) == 0;
  if (!result && parse_name("--placement", text, placement_words, SN_PLACEMENT_COUNT, &found, err) != SN_OK)
    return err->code;
  *placement = (sn_placement)found;
  return SN_OK;
}
