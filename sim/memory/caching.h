/* Caching: PyTorch's caching allocator (c10/cuda/CUDACachingAllocator.cpp) as a data structure: which bytes a program
 * that asks for blocks and gives them back has allocated, and which the allocator has reserved of the device.
 *
 *   sn_caching *c = sn_caching_new(limit, &(sn_caching_options){0}, &err);
 *   uint32_t x, y;
 *   sn_caching_take(c, 3 << 20, &x, &err);     a segment of 20 MiB, of which 3 MiB are a block
 *   sn_caching_take(c, 100, &y, &err);         a segment of 2 MiB, of which 512 B are a block
 *   sn_caching_give(c, x);                     the 20 MiB stay reserved
 *   sn_caching_look(c)->reserved_bytes
 *   sn_caching_free(c);
 *
 * The rules (frameworks, section 4), as of PyTorch 1.0 to 2.9 with their defaults:
 *   - A request is rounded up to 512 B. Up to 1 MiB it is small, else large: two pools that share nothing.
 *   - It is of a stream of the GPU, 0 unless it says another. Streams have pools of their own, and blocks and segments
 *     never change them: what one has given back serves no other.
 *   - It takes the smallest free block of its pool that is large enough, of several the one with the lowest address.
 *   - Where there is none, a segment comes from the driver: 2 MiB for small requests, 20 MiB for those below 10 MiB,
 *     else as much as was asked for, rounded up to 2 MiB.
 *   - What is left over of a block becomes a free block where that is at least 512 B (small), or over 1 MiB (large);
 *     else the request has all of it.
 *   - A block given back joins its free neighbours in the segment. Segments stay.
 *   - Where the driver has no more, all segments that are one free block go back to it, whatever their stream, and it
 *     is asked once more.
 *   - max_split_bytes: blocks from that size on are never cut, nor taken by requests that are smaller, or by those that
 *     are smaller by 20 MiB or more; and before all free segments go back, only free blocks of that size do.
 *   - expandable_segments: a pool has one segment, an address space of 9/8 of the device's memory, of which pages are
 *     mapped and unmapped (2 MiB small, 20 MiB large). Blocks are cut where at least 512 B are left over. Where memory
 *     ends, pages that are free as a whole are unmapped.
 * Not here: blocks that two streams use (record_stream()), garbage_collection_threshold, roundup_power2_divisions, private pools of CUDA graphs.
 *
 * Addresses decide between free blocks of one size alone. A driver's are not known: here a segment gets the lowest
 * addresses from 0 on that are free, so the same calls give the same figures everywhere. A call is O(log free blocks
 * of about that size) (sim/memory/bins.h), and O(free blocks) where segments go back to the driver.
 */
#ifndef SN_SIM_MEMORY_CACHING_H
#define SN_SIM_MEMORY_CACHING_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>

#define SN_CACHING_NO_LIMIT UINT64_MAX
/* max_split_bytes must be more than this, as PyTorch's max_split_size_mb more than 20. */
#define SN_CACHING_SPLIT_LEAST (UINT64_C(20) << 20)

typedef struct sn_caching_options {
  bool expandable_segments;
  uint64_t max_split_bytes; /* 0: blocks of any size are cut */
  uint64_t beside_bytes;    /* of the device's memory, what the limit leaves out: expandable segments have addresses for
                             * 9/8 of both */
  uint32_t streams;         /* that ask, up to SN_CACHING_STREAMS; 0: one */
} sn_caching_options;

/* Bytes; the names are those of torch.cuda.memory_stats(). */
typedef struct sn_caching_figures {
  uint64_t allocated_bytes, allocated_peak; /* sum of blocks in use, with what was not cut off */
  uint64_t reserved_bytes, reserved_peak;   /* sum of segments, or of mapped pages */
  uint32_t segments;                        /* there now */
  uint64_t retries;                         /* times that the driver had no more, and all free segments went back */
} sn_caching_figures;

/* Addresses from `offset` on. */
typedef struct sn_extent {
  uint64_t offset, bytes;
} sn_extent;

/* The limits with which the driver would have given and refused the same so far. */
typedef struct sn_caching_range {
  uint64_t from, below;
} sn_caching_range;

/* What a request asks for, as the allocator sees it: worked out once for one that comes again and again. */
typedef struct sn_caching_size {
  uint64_t bytes; /* rounded up; 0: none are asked for; UINT64_MAX: more than any driver has */
  uint16_t bin;   /* sim/memory/bins.h */
  uint8_t pool;   /* of its stream, and of what is as small or large */
} sn_caching_size;

enum {
  SN_CACHING_BLOCK = 512, /* what every block's address and size are multiples of (PyTorch: kMinBlockSize) */
  SN_CACHING_STREAMS = 3
};

typedef struct sn_caching sn_caching;

/* What the driver can give is `limit_bytes` in all. SN_BAD_USAGE for a max_split_bytes that PyTorch refuses. */
sn_caching *sn_caching_new(uint64_t limit_bytes, const sn_caching_options *options, sn_err *err);
void sn_caching_free(sn_caching *caching);

/* O(blocks). */
sn_caching *sn_caching_copy(const sn_caching *caching, sn_err *err);

/* From now on another limit, for which what has happened so far is to be right too (sn_caching_limits()). */
void sn_caching_set_limit(sn_caching *caching, uint64_t limit_bytes);
uint64_t sn_caching_limit(const sn_caching *caching);

/* Takes a block of at least `bytes`, the number of which is from 1 on; of 0 bytes the number is 0, and nothing is
 * taken. SN_NO_FIT, with the figures, where the driver has too little even after free segments went back; the allocator
 * stays as good as before. SN_NO_MEMORY of the host: only sn_caching_free() may follow. */
sn_status sn_caching_take(sn_caching *caching, uint64_t bytes, uint32_t *block, sn_err *err);

/* Takes a block that is never given back, and so needs no number: neighbours that stay are one block from then on. */
sn_status sn_caching_keep(sn_caching *caching, uint64_t bytes, sn_err *err);

/* Gives a block back that was taken and not given back since; 0 is none. */
void sn_caching_give(sn_caching *caching, uint32_t block);

/* Takes a block and gives it back at once, as a workspace: where a free block serves only the peak remembers it. */
sn_status sn_caching_pass(sn_caching *caching, uint64_t bytes, sn_err *err);

/* The same of a size. SN_NO_FIT says nothing in *err: a search asks for many that do not fit, and reads no text.
 * `stream` is below the allocator's options' `streams`. */
sn_caching_size sn_caching_size_on(uint64_t bytes, uint32_t stream);
static inline sn_caching_size sn_caching_size_of(uint64_t bytes) {
  return sn_caching_size_on(bytes, 0);
}
sn_status sn_caching_take_size(sn_caching *caching, const sn_caching_size *size, uint32_t *block, sn_err *err);
sn_status sn_caching_keep_size(sn_caching *caching, const sn_caching_size *size, sn_err *err);
sn_status sn_caching_pass_size(sn_caching *caching, const sn_caching_size *size, sn_err *err);

/* `asking` is called where no free block serves a request, before the driver is asked for what makes `needed` reserved,
 * and before anything has changed; `asked` when it has answered, before the block is taken. A copy is not watched. */
void sn_caching_watch(sn_caching *caching, void (*asking)(void *user, uint64_t needed), void (*asked)(void *user),
                      void *user);

/* Where a block that is in use lies, and how large it is. */
sn_extent sn_caching_extent(const sn_caching *caching, uint32_t block);

const sn_caching_figures *sn_caching_look(const sn_caching *caching);

/* Not of expandable segments, whose addresses depend on the limit. */
sn_caching_range sn_caching_limits(const sn_caching *caching);

/* The largest free block that shares its segment with others (PyTorch: inactive split): no request that is larger can
 * have it, nor the driver get it back. O(blocks). */
uint64_t sn_caching_largest_split(const sn_caching *caching);

/* Every block that is mapped, segment by segment from the lowest address up: whether it is in use, and whether its
 * segment begins with it. O(blocks). */
void sn_caching_each(const sn_caching *caching, void (*each)(void *user, sn_extent block, bool used, bool first),
                     void *user);

/* Peaks begin anew from what is there now (torch.cuda.reset_peak_memory_stats()). */
void sn_caching_reset_peaks(sn_caching *caching);

#endif
