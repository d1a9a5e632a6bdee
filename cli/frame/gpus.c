/* Several GPUs; see the header. */
#include "cli/frame/gpus.h"

#include "base/units.h"
#include "cli/frame/report.h"
#include "cli/options/table.h"
#include "sim/parallel/times.h"

#include <inttypes.h>
#include <string.h>

double sn_gpus_tokens(const sn_run *run, const sn_result *r) {
  sn_mesh mesh = sn_run_mesh(run);
  return r->images_per_second * run->image_height / sn_mesh_world(&mesh);
}

/* False where it is not known by now: a file that lies elsewhere. */
static bool find_cluster(const sn_run *run, const sn_cluster *known, const sn_mesh *mesh, sn_cluster *cluster,
                         bool *assumed) {
  sn_cluster asked = known ? *known : (sn_cluster){0};
  sn_device device;
  sn_err none = SN_ERR_INIT;
  if (!known && *run->conditions.cluster && sn_cluster_load(run->conditions.cluster, &asked, &none) != SN_OK)
    return false;
  if (run->conditions.nodes > 0 && sn_cluster_set_nodes(&asked, run->conditions.nodes, &none) != SN_OK) return false;
  return sn_device_load(run->gpu, &device, &none) == SN_OK &&
         sn_mesh_cluster(mesh, &asked, &device, cluster, assumed, &none) == SN_OK;
}

static void print_links(const sn_run *run, const sn_cluster *known, const sn_mesh *mesh, FILE *out) {
  sn_cluster c;
  bool assumed = false;
  if (!find_cluster(run, known, mesh, &c, &assumed)) { /* a stored run has a cluster's name, not its file */
    fputs(", links as of ", out);
    sn_table_print_clean(out, run->conditions.cluster);
    fputs(", whose file is not stored", out);
    return;
  }
  uint32_t nodes = (sn_mesh_world(mesh) + c.gpus_per_node - 1) / c.gpus_per_node; /* there may be more */
  fprintf(out, ", %" PRIu32 " node%s, %s %.3g of %.3g GB/s%s", nodes, nodes > 1 ? "s" : "", sn_fabric_name(c.fabric),
          c.node.bus / 1e9, c.node.line / 1e9, assumed ? " (assumed)" : "");
  if (nodes > 1)
    fprintf(out, ", between nodes %" PRIu32 " x %.3g of %.3g GB/s", c.nics, c.net.bus / 1e9, c.net.line / 1e9);
}

/* "65,536 tokens" */
static void print_update(const sn_run *run, const sn_mesh *mesh, FILE *out) {
  char text[SN_UNIT_TEXT];
  uint64_t ranks = (uint64_t)sn_mesh_size(mesh, SN_MESH_FSDP) * sn_mesh_size(mesh, SN_MESH_DP);
  uint64_t each = (uint64_t)run->batch * (run->conditions.accumulate > 1 ? run->conditions.accumulate : 1);
  bool tokens = sn_report_is_of_sequences(run);
  fprintf(out, ", %s %s an update", sn_print_count(ranks * each * (tokens ? run->image_height : 1), text),
          tokens ? "tokens" : sn_report_run_unit(run));
}

/* Of a pipeline what its fullest stage sends and receives. */
static void print_traffic(const sn_shared_row *s, bool staged, FILE *out) {
  const struct {
    uint64_t bytes;
    const char *what;
  } parts[] = {{s->gathered_bytes, "all-gather"},
               {s->scattered_bytes, "reduce-scatter"},
               {s->reduced_bytes, "all-reduce"},
               {s->sent_bytes, "sends"}};
  char text[SN_UNIT_TEXT];
  const char *before = staged ? "an update of the fullest stage crosses links with " : "an update crosses links with ";
  for (size_t i = 0; i < sizeof parts / sizeof parts[0]; i++) {
    if (parts[i].bytes == 0) continue;
    fprintf(out, "%s%s (%s)", before, sn_print_bytes(parts[i].bytes, text), parts[i].what);
    before = ", ";
  }
  fprintf(out, "; communicators %s (assumed)\n", sn_print_bytes(s->communicator_bytes, text));
}

/* A line a stage: what its own GPU takes by each strategy. */
static void print_stages(const sn_run *run, FILE *out) {
  for (uint32_t s = 0; s < run->n_stages; s++) {
    const sn_run *stage = run->stages[s];
    fprintf(out, "stage %-3" PRIu32, s);
    for (uint32_t i = 0; i < stage->n_results; i++) {
      const sn_result *r = &stage->results[i];
      char live[SN_UNIT_TEXT], device[SN_UNIT_TEXT];
      fprintf(out, "%s %s live, %s of the GPU with %s%s", i ? ";" : "", sn_print_bytes(sn_live_total(&r->live), live),
              sn_print_bytes(r->peak_device_bytes, device), r->strategy, r->fits ? "" : " (too much)");
    }
    fputs("\n", out);
  }
}

/* Three digits, as no model of times has more. */
static char *print_ms(int64_t ns, char *text) {
  return sn_print_digits((double)ns / 1e6, 3, text);
}

void sn_gpus_print(const sn_run *run, const sn_cluster *cluster, FILE *out) {
  char transfers[SN_UNIT_TEXT], exposed[SN_UNIT_TEXT], waits[SN_UNIT_TEXT];
  sn_mesh mesh = sn_run_mesh(run);
  const sn_result *first = NULL;
  for (uint32_t i = 0; i < run->n_results && !first; i++)
    if (run->results[i].shared.world > 0) first = &run->results[i];
  if (!first) return;
  fprintf(out, "%s: %" PRIu32 " GPUs", mesh.text, first->shared.world);
  print_links(run, cluster, &mesh, out);
  if (first->shared.groups > 1) fprintf(out, ", %" PRIu32 " groups", first->shared.groups);
  print_update(run, &mesh, out);
  fputs("\n", out);
  print_traffic(&first->shared, run->n_stages > 0, out);
  const char *form = run->n_stages > 0 ? "%s ms of transfers of the slowest stage; of all stages', one behind the "
                                         "other, %s are exposed; MFU %.0f %% (%s)\n"
                                       : "%s ms of transfers, of which %s are exposed; MFU %.0f %% (%s)\n";
  fprintf(out, form, print_ms(first->shared.transfer_ns, transfers), print_ms(first->shared.exposed_ns, exposed),
          100 * first->shared.flops_share, first->strategy);
  if (run->n_stages == 0) return;
  int64_t busy = first->iteration_ns - first->shared.bubble_ns;
  fprintf(out, "bubble %.1f %%: stages wait %s ms for each other\n",
          busy > 0 ? 100 * (double)first->shared.bubble_ns / (double)busy : 0,
          print_ms(first->shared.bubble_ns, waits));
  print_stages(run, out);
}
