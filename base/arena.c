/* Arena: a chain of blocks, newest first. A request that does not fit the newest block opens a new one: a standard
 * block for small requests, a block of its own for a large one (put behind the newest, whose room is still good). A
 * shared arena has one block, which lies behind the arena itself in the mapping. */
#include "base/arena.h"

#include <fcntl.h>
#include <stdalign.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BLOCK_BYTES = 64 * 1024, CLEARED_BYTES = 4096, ALIGN = alignof(max_align_t) };

typedef struct block {
  struct block *next;
  size_t used, room, cleared; /* cleared: from there on nothing is zeroed yet */
  alignas(max_align_t) unsigned char bytes[];
} block;

/* Lies in the arena itself. */
typedef struct adopted {
  struct adopted *next;
  void *memory;
} adopted;

struct sn_arena {
  block *newest;
  adopted *adopted;
  size_t mapped; /* bytes of the mapping that it lies in, of a shared one */
};

sn_arena *sn_arena_new(void) {
  return calloc(1, sizeof(sn_arena));
}

/* Memory of /dev/zero, mapped as shared, is what others call anonymous. */
static void *map_shared(size_t bytes) {
  int zero = open("/dev/zero", O_RDWR | O_CLOEXEC);
  void *place = zero >= 0 ? mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, zero, 0) : MAP_FAILED;
  if (zero >= 0) close(zero);
  return place == MAP_FAILED ? NULL : place;
}

sn_arena *sn_arena_shared(size_t bytes) {
  size_t head = (sizeof(sn_arena) + ALIGN - 1) / ALIGN * ALIGN, all;
  if (__builtin_add_overflow(bytes, head + sizeof(block), &all)) return NULL;
  sn_arena *arena = map_shared(all);
  if (!arena) return NULL;
  arena->newest = (block *)(void *)((unsigned char *)arena + head);
  arena->newest->room = arena->newest->cleared = bytes;
  arena->mapped = all;
  return arena;
}

void sn_arena_free(sn_arena *arena) {
  if (!arena) return;
  if (arena->mapped) {
    munmap(arena, arena->mapped);
    return;
  }
  for (const adopted *a = arena->adopted; a; a = a->next) free(a->memory);
  for (block *b = arena->newest, *next; b; b = next) {
    next = b->next;
    free(b);
  }
  free(arena);
}

/* Zeroes what is left of a block piece by piece: of most arenas little is used. */
static void clear_to(block *b, size_t end) {
  size_t to = b->room - end > CLEARED_BYTES ? end + CLEARED_BYTES : b->room;
  memset(b->bytes + b->cleared, 0, to - b->cleared);
  b->cleared = to;
}

static void *take(block *b, size_t bytes) {
  void *place = b->bytes + b->used;
  b->used += bytes;
  if (b->used > b->cleared) clear_to(b, b->used);
  return place;
}

void *sn_arena_alloc(sn_arena *arena, size_t count, size_t size) {
  size_t bytes;
  if (__builtin_mul_overflow(count, size, &bytes) || bytes > PTRDIFF_MAX - sizeof(block) - ALIGN) return NULL;
  bytes = (bytes + ALIGN) / ALIGN * ALIGN;
  if (arena->newest && arena->newest->room - arena->newest->used >= bytes) return take(arena->newest, bytes);
  if (arena->mapped) return NULL;
  bool large = bytes > BLOCK_BYTES / 4;
  size_t room = large ? bytes : BLOCK_BYTES;
  block *b = large ? calloc(1, sizeof *b + room) : malloc(sizeof *b + room);
  if (!b) return NULL;
  b->used = 0;
  b->room = room;
  b->cleared = large ? room : 0;
  block **place = large && arena->newest ? &arena->newest->next : &arena->newest;
  b->next = *place;
  *place = b;
  return take(b, bytes);
}

bool sn_arena_adopt(sn_arena *arena, void *memory) {
  adopted *a = arena->mapped ? NULL : sn_arena_alloc(arena, 1, sizeof *a);
  if (!a) return false;
  *a = (adopted){.next = arena->adopted, .memory = memory};
  arena->adopted = a;
  return true;
}

char *sn_arena_text(sn_arena *arena, const char *text) {
  size_t bytes = strlen(text) + 1;
  char *copy = sn_arena_alloc(arena, bytes, 1);
  return copy ? memcpy(copy, text, bytes) : NULL;
}

/* Most texts are names, which are printed once. */
char *sn_arena_vprint(sn_arena *arena, const char *format, va_list args) {
  char name[128];
  va_list again;
  va_copy(again, args);
  int length = vsnprintf(name, sizeof name, format, args);
  char *text = length < 0 ? NULL : sn_arena_alloc(arena, (size_t)length + 1, 1);
  if (text && (size_t)length < sizeof name)
    memcpy(text, name, (size_t)length + 1);
  else if (text)
    vsnprintf(text, (size_t)length + 1, format, again);
  va_end(again);
  return text;
}

char *sn_arena_print(sn_arena *arena, const char *format, ...) {
  va_list args;
  va_start(args, format);
  char *text = sn_arena_vprint(arena, format, args);
  va_end(args);
  return text;
}
