/* Help for people who mistype: the known name nearest to the one given. */
#ifndef SN_BASE_TEXT_H
#define SN_BASE_TEXT_H

#include <stdbool.h>
#include <stddef.h>

/* The name among `names` that is nearest to `text`, case ignored: the first that begins with it, else the one of least
 * edit distance (with swaps), else one that holds it or stands in it ("3090", "kernel_size"; three letters or more, the
 * longest); NULL where none is near enough to be worth offering (more than a third of the letters differ). Cost:
 * O(count * length^2). */
const char *sn_text_nearest(const char *text, const char *const *names, size_t count);

/* Prints ` (did you mean "name"?)` or nothing into `out`; returns out. */
char *sn_text_suggest(const char *text, const char *const *names, size_t count, char *out, size_t room);

/* Whether two names are the same but for case, blanks, '-' and '_': "ResNet-50", "resnet50". */
bool sn_text_same(const char *a, const char *b);

#endif
