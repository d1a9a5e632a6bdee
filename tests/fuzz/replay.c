/* Replays a fuzz target's corpus as a normal test: calls it once with every file of the folder given, in name order.
 *
 *   fuzz_net tests/fuzz/corpus/net
 *
 * A crash, a failed assert or a sanitizer report ends the program and so fails the test; so does a folder without
 * inputs. Linked to fuzz targets in builds without libFuzzer, whose own main() it stands in for.
 */
#include "tests/fuzz/fuzz.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>

/* Reads all of `file` into memory of exactly that size, so that a sanitizer sees a read behind its end. */
static uint8_t *read_all(FILE *file, size_t *size) {
  struct stat info;
  if (fstat(fileno(file), &info) != 0 || !S_ISREG(info.st_mode)) return NULL;
  *size = (size_t)info.st_size;
  uint8_t *data = malloc(*size ? *size : 1);
  if (data && fread(data, 1, *size, file) != *size) {
    free(data);
    return NULL;
  }
  return data;
}

static int replay_file(const char *path) {
  FILE *file = fopen(path, "rb");
  size_t size = 0;
  uint8_t *data = file ? read_all(file, &size) : NULL;
  if (file) fclose(file);
  if (!data) {
    fprintf(stderr, "%s: cannot be read\n", path);
    return 1;
  }
  printf("%s: %zu bytes\n", path, size);
  fflush(stdout); /* a crash must not swallow the name of its input */
  int result = LLVMFuzzerTestOneInput(data, size);
  free(data);
  return result;
}

/* Skips hidden files, and with them "." and "..". */
static int is_input(const struct dirent *entry) {
  return entry->d_name[0] != '.';
}

static int replay_entry(const char *folder, const char *name) {
  char path[4096];
  int length = snprintf(path, sizeof path, "%s/%s", folder, name);
  return length > 0 && (size_t)length < sizeof path ? replay_file(path) : 1;
}

int main(int argc, char **argv) {
  struct dirent **entries = NULL;
  int count = argc == 2 ? scandir(argv[1], &entries, is_input, alphasort) : -1;
  int failed = 0;
  for (int i = 0; i < count; i++) {
    failed += replay_entry(argv[1], entries[i]->d_name) != 0;
    free(entries[i]);
  }
  free(entries);
  if (count < 1) fprintf(stderr, "usage: %s FOLDER (with at least one input)\n", argv[0]);
  printf("%d inputs, %d failed\n", count < 0 ? 0 : count, failed);
  return count < 1 || failed;
}
