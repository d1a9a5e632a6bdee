/* Names of co-run policies; see the header. */
#include "sim/policy/policy.h"

#include "base/text.h"

#include <ctype.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

static const char *const names[SN_POLICY_KINDS] = {
    [SN_POLICY_NONE] = "none",   [SN_POLICY_WORKERS] = "KxP", [SN_POLICY_MANUAL] = "manual",
    [SN_POLICY_S1] = "s1",       [SN_POLICY_S12] = "s12",     [SN_POLICY_S123] = "s123",
    [SN_POLICY_S1234] = "s1234", [SN_POLICY_PATH] = "path",   [SN_POLICY_BEST] = "best",
};

/* A whole number from 0 on, at most a little more than anything allowed; its end into `end`, NULL: there is none. */
static uint32_t number(const char *text, const char **end) {
  uint32_t n = 0;
  const char *c = text;
  for (; isdigit((unsigned char)*c); c++)
    if (n <= SN_POLICY_THREADS_MOST) n = 10 * n + (uint32_t)(*c - '0');
  *end = c > text ? c : NULL;
  return n;
}

/* "4x16". False where it does not look like that. */
static bool parse_workers(const char *text, sn_policy *p) {
  const char *end = NULL;
  p->kind = SN_POLICY_WORKERS;
  p->workers = number(text, &end);
  if (!end || *end != 'x') return false;
  p->threads = number(end + 1, &end);
  return end && *end == '\0';
}

static sn_status unknown(const char *text, sn_err *err) {
  char nearest[64];
  sn_text_suggest(text, &names[SN_POLICY_MANUAL], SN_POLICY_KINDS - SN_POLICY_MANUAL, nearest, sizeof nearest);
  return sn_fail(
      err, SN_BAD_USAGE,
      "no co-run policy is called \"%.40s\"%s: give KxP (4x16: 4 workers of 16 threads each), manual, s1, s12, "
      "s123, s1234, path or best",
      text, nearest);
}

sn_status sn_policy_parse(const char *text, sn_policy *policy, sn_err *err) {
  sn_policy p = {0};
  if (parse_workers(text, &p)) {
    if (p.workers < 1 || p.workers > SN_POLICY_WORKERS_MOST)
      return sn_fail(err, SN_BAD_USAGE, "co-run policy \"%.40s\": there are 1 to %d workers", text,
                     SN_POLICY_WORKERS_MOST);
    if (p.threads < 1 || p.threads > SN_POLICY_THREADS_MOST)
      return sn_fail(err, SN_BAD_USAGE, "co-run policy \"%.40s\": a worker has 1 to %d threads", text,
                     SN_POLICY_THREADS_MOST);
    *policy = p;
    return SN_OK;
  }
  for (sn_policy_kind kind = SN_POLICY_MANUAL; kind < SN_POLICY_KINDS; kind++)
    if (strcmp(text, names[kind]) == 0) {
      *policy = (sn_policy){.kind = kind};
      return SN_OK;
    }
  return unknown(text, err);
}

char *sn_policy_name(sn_policy policy, char *text) {
  if (policy.kind == SN_POLICY_WORKERS)
    snprintf(text, SN_POLICY_NAME, "%" PRIu32 "x%" PRIu32, policy.workers, policy.threads);
  else
    snprintf(text, SN_POLICY_NAME, "%s", names[policy.kind]);
  return text;
}

bool sn_policy_same(sn_policy a, sn_policy b) {
  return a.kind == b.kind && a.workers == b.workers && a.threads == b.threads;
}
