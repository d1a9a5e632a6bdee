/* Where a path leads: files by their place rather than by the name someone gave them. */
#ifndef SN_BASE_PATH_H
#define SN_BASE_PATH_H

#include "base/err.h"

#include <stdbool.h>
#include <stdio.h>

/* What to open for a file that is read: standard input for "-", as -o - is standard output. */
const char *sn_path_input(const char *path);

/* Opens it. A pipe may be read too, but one that nobody has begun to write to within a second is refused: opening it
 * would wait for ever. SN_BAD_FILE with path and reason. */
FILE *sn_path_open(const char *path, sn_err *err);

/* The absolute path of a file without links, as far as it exists; what does not is taken as it stands. To be freed;
 * NULL with errno set where the path leads nowhere (links in a circle, a file for a folder) or memory ran out. */
char *sn_path_real(const char *path);

/* Whether both lead to the same regular file, through links of either kind, or would if it were made. */
bool sn_path_same(const char *a, const char *b);

#endif
