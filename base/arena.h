/* Arena: memory that lives and dies with one stage object (a net, a route, a plan).
 *
 * Allocation is a bump of a pointer, freeing is one call. Memory comes zeroed and aligned for any type. A failed or
 * overflowing request returns NULL and leaves the arena usable; the caller reports it with sn_fail_memory().
 */
#ifndef SN_BASE_ARENA_H
#define SN_BASE_ARENA_H

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

typedef struct sn_arena sn_arena;

sn_arena *sn_arena_new(void); /* NULL: out of memory */
void sn_arena_free(sn_arena *arena);

/* An arena of at most `bytes` that processes forked from this one share, at the same addresses. NULL: out of memory. */
sn_arena *sn_arena_shared(size_t bytes);

/* Room for `count` items of `size` bytes, zeroed; a count of zero still returns a valid pointer. */
void *sn_arena_alloc(sn_arena *arena, size_t count, size_t size);

/* Takes over what malloc() or realloc() has given; free() is the arena's then. False where it is out of memory, or
 * shared: the memory stays the caller's. */
bool sn_arena_adopt(sn_arena *arena, void *memory);

/* A copy of `text`, or the printed text. NULL: out of memory. */
char *sn_arena_text(sn_arena *arena, const char *text);
char *sn_arena_print(sn_arena *arena, const char *format, ...) __attribute__((format(printf, 2, 3)));
char *sn_arena_vprint(sn_arena *arena, const char *format, va_list args) __attribute__((format(printf, 2, 0)));

#endif
