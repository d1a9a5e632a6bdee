/* A sweep over the number of GPUs: its curves are schemes, of one strategy. A scheme is a mesh without the number of its
 * slowest axis, which is the one that grows:
 *
 *   fsdp=2, fsdp=4, fsdp=8,prefetch=2         fsdp, fsdp, fsdp,prefetch=2
 *   tp=2, tp=8, tp=8,fsdp=2, tp=8,fsdp=4      tp, tp, tp=8,fsdp, tp=8,fsdp
 *
 * so that a scheme has one mesh of so many GPUs. One GPU is where all begin that have no other axis. */
#include "plots/plot_internal.h"
#include "sim/graph/mesh.h"

#include <stdio.h>
#include <string.h>

/* What a stored point has, which was parsed before it was stored. */
static sn_mesh mesh_of(const sn_sweep_row *row) {
  sn_mesh mesh = {0};
  sn_err none = SN_ERR_INIT;
  if (sn_mesh_parse(row->conditions.parallel, &mesh, &none) != SN_OK) mesh = (sn_mesh){0};
  return mesh;
}

uint64_t sn__sweep_world(const sn_sweep_row *row) {
  sn_mesh mesh = mesh_of(row);
  return sn_mesh_world(&mesh);
}

uint32_t sn__sweep_copies(const sn_sweep_row *row) {
  sn_mesh mesh = mesh_of(row);
  return sn_mesh_copies(&mesh);
}

/* The axis that grows; SN_MESH_AXES: one GPU. */
static sn_mesh_axis growing(const sn_mesh *mesh) {
  sn_mesh_axis axis = SN_MESH_AXES;
  for (sn_mesh_axis a = 0; a < SN_MESH_AXES; a++)
    if (sn_mesh_size(mesh, a) > 1) axis = a;
  return axis;
}

/* Where a key's number stands in a mesh's text; NULL: it is not there. */
static const char *find_number(const char *text, const char *key) {
  size_t length = strlen(key);
  for (const char *at = text; at; at = strchr(at, ',')) {
    at += *at == ',';
    if (strncmp(at, key, length) == 0 && at[length] == '=') return at + length;
  }
  return NULL;
}

static const char *scheme_of(const sn_sweep_row *row, char text[SN_MESH_TEXT]) {
  sn_mesh mesh = mesh_of(row);
  sn_mesh_axis axis = growing(&mesh);
  const char *number = axis < SN_MESH_AXES ? find_number(mesh.text, sn_mesh_word(axis)) : NULL;
  if (number)
    snprintf(text, SN_MESH_TEXT, "%.*s%s", (int)(number - mesh.text), mesh.text, number + strcspn(number, ","));
  else
    snprintf(text, SN_MESH_TEXT, "%s", mesh.text);
  return text;
}

/* Whether a scheme's meshes begin with one GPU. */
static bool begins_alone(const sn_sweep_row *row) {
  sn_mesh mesh = mesh_of(row);
  sn_mesh_axis axis = growing(&mesh);
  return axis < SN_MESH_AXES && sn_mesh_world(&mesh) == sn_mesh_size(&mesh, axis);
}

const char *sn__sweep_scheme(const sn__sweep_chart *chart, unsigned curve, char text[SN_MESH_TEXT]) {
  scheme_of(chart->schemes[curve], text);
  if (!*text) snprintf(text, SN_MESH_TEXT, "one GPU");
  return text;
}

bool sn__sweep_is_of_scheme(const sn__sweep_chart *chart, unsigned curve, const sn_sweep_row *row) {
  char own[SN_MESH_TEXT], its[SN_MESH_TEXT];
  if (strcmp(scheme_of(row, own), scheme_of(chart->schemes[curve], its)) == 0) return true;
  return !*own && begins_alone(chart->schemes[curve]);
}

static bool has_scheme(const sn__sweep_chart *chart, const sn_sweep_row *row) {
  char own[SN_MESH_TEXT], its[SN_MESH_TEXT];
  scheme_of(row, own);
  for (unsigned s = 0; s < chart->n_curves; s++)
    if (strcmp(own, scheme_of(chart->schemes[s], its)) == 0) return true;
  return false;
}

void sn__sweep_add_schemes(sn__sweep_chart *chart, const sn_sweep_row *const *rows, uint32_t n_rows) {
  for (uint32_t i = 0; i < n_rows && chart->n_curves < SN__SWEEP_CURVES; i++)
    if (*rows[i]->conditions.parallel && !has_scheme(chart, rows[i])) chart->schemes[chart->n_curves++] = rows[i];
  if (chart->n_curves == 0) chart->schemes[chart->n_curves++] = rows[0];
}
