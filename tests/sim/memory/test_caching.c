/* The caching allocator's constants, one by one, and what it says when nothing fits. Random requests are in
 * prop_caching.c. */
#include "sim/memory/caching.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>
#include <string.h>

#define KIB UINT64_C(1024)
#define MIB (UINT64_C(1) << 20)

static sn_caching *open_caching(uint64_t limit, sn_caching_options options) {
  sn_err err = SN_ERR_INIT;
  sn_caching *c = sn_caching_new(limit, &options, &err);
  assert_non_null(c);
  return c;
}

static uint32_t take(sn_caching *c, uint64_t bytes) {
  sn_err err = SN_ERR_INIT;
  uint32_t block;
  if (sn_caching_take(c, bytes, &block, &err) != SN_OK) fail_msg("%s: %s", sn_status_name(err.code), err.text);
  return block;
}

static uint32_t take_on(sn_caching *c, uint64_t bytes, uint32_t stream) {
  sn_err err = SN_ERR_INIT;
  const sn_caching_size size = sn_caching_size_on(bytes, stream);
  uint32_t block;
  assert_int_equal(sn_caching_take_size(c, &size, &block, &err), SN_OK);
  return block;
}

static void give(sn_caching *c, uint32_t block) {
  sn_caching_give(c, block);
}

static void check(const sn_caching *c, uint64_t allocated, uint64_t reserved, uint32_t segments) {
  assert_int_equal(sn_caching_look(c)->allocated_bytes, allocated);
  assert_int_equal(sn_caching_look(c)->reserved_bytes, reserved);
  assert_int_equal(sn_caching_look(c)->segments, segments);
}

/* What one request takes of an empty allocator. */
static void one_request(void **state) {
  (void)state;
  static const struct {
    uint64_t bytes, allocated, reserved;
  } rows[] = {
      {1, 512, 2 * MIB},
      {512, 512, 2 * MIB},
      {513, 1024, 2 * MIB},
      {MIB, MIB, 2 * MIB},
      {MIB + 1, MIB + 512, 20 * MIB},
      {10 * MIB - 512, 10 * MIB - 512, 20 * MIB},
      {10 * MIB - 511, 10 * MIB, 10 * MIB}, /* rounded first: a segment of its own */
      {10 * MIB, 10 * MIB, 10 * MIB},
      {10 * MIB + 1, 10 * MIB + 512, 12 * MIB},   /* 2 MiB less 512 B are left: over 1 MiB, cut off */
      {11 * MIB, 12 * MIB, 12 * MIB},             /* 1 MiB is left: not over 1 MiB */
      {11 * MIB - 512, 11 * MIB - 512, 12 * MIB}, /* 1 MiB and 512 B are left */
      {19 * MIB, 20 * MIB, 20 * MIB},
      {100 * MIB, 100 * MIB, 100 * MIB},
  };
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++) {
    sn_caching *c = open_caching(SN_CACHING_NO_LIMIT, (sn_caching_options){0});
    uint32_t block = take(c, rows[i].bytes);
    uint64_t allocated = rows[i].allocated;
    check(c, allocated, rows[i].reserved, 1);
    assert_int_equal(sn_caching_extent(c, block).bytes, allocated);
    give(c, block);
    check(c, 0, rows[i].reserved, 1); /* stays */
    assert_int_equal(sn_caching_look(c)->allocated_peak, allocated);
    sn_caching_free(c);
  }
}

static void nothing_is_nothing(void **state) {
  (void)state;
  sn_caching *c = open_caching(0, (sn_caching_options){0});
  assert_int_equal(take(c, 0), 0);
  give(c, 0);
  check(c, 0, 0, 0);
  sn_caching_free(c);
  sn_caching_free(NULL);
}

/* The smallest that is large enough, of equal ones the lowest; each pool its own. */
static void best_fit(void **state) {
  (void)state;
  sn_caching *c = open_caching(SN_CACHING_NO_LIMIT, (sn_caching_options){0});
  uint32_t blocks[7];
  static const uint64_t sizes[] = {4 * MIB, 2 * MIB, 3 * MIB, 2 * MIB, 3 * MIB, 2 * MIB, 4 * MIB};
  for (int i = 0; i < 7; i++) blocks[i] = take(c, sizes[i]); /* one segment of 20 MiB, full */
  check(c, 20 * MIB, 20 * MIB, 1);
  give(c, blocks[0]); /* 4 MiB free at 0, 3 at 6 and at 11 */
  give(c, blocks[4]);
  give(c, blocks[2]);
  assert_int_equal(sn_caching_extent(c, take(c, 2 * MIB)).offset, 6 * MIB);
  assert_int_equal(sn_caching_extent(c, take(c, 3 * MIB)).offset, 11 * MIB);
  assert_int_equal(sn_caching_extent(c, take(c, 3 * MIB)).offset, 0);
  assert_int_equal(sn_caching_look(c)->reserved_bytes, 20 * MIB);
  take(c, MIB / 2);                          /* small: not what is left of the large */
  check(c, 20 * MIB + MIB / 2, 22 * MIB, 2); /* 1 MiB that would be left over is not cut off */
  sn_caching_free(c);
}

static void neighbours_join(void **state) {
  (void)state;
  sn_caching *c = open_caching(SN_CACHING_NO_LIMIT, (sn_caching_options){0});
  uint32_t a = take(c, 512 * KIB), b = take(c, 512 * KIB), d = take(c, 512 * KIB);
  assert_int_equal(sn_caching_largest_split(c), 512 * KIB);
  give(c, a);
  give(c, d); /* 512 KiB in front of b, 1 MiB behind it */
  assert_int_equal(sn_caching_largest_split(c), MIB);
  assert_int_equal(sn_caching_extent(c, take(c, MIB)).offset, MIB);
  give(c, b);
  assert_int_equal(sn_caching_extent(c, take(c, MIB)).offset, 0);
  check(c, 2 * MIB, 2 * MIB, 1);
  sn_caching_free(c);
}

/* A size asks for what its bytes ask for; where it does not fit, nothing is said. */
static void sizes(void **state) {
  (void)state;
  const uint64_t bytes[] = {0, 1, 512, 513, MIB, MIB + 1, 15 * MIB, 64 * MIB, UINT64_MAX};
  sn_err err = SN_ERR_INIT, told = SN_ERR_INIT;
  for (size_t i = 0; i < sizeof bytes / sizeof bytes[0]; i++) {
    sn_caching *c = open_caching(40 * MIB, (sn_caching_options){0}),
               *same = open_caching(40 * MIB, (sn_caching_options){0});
    const sn_caching_size size = sn_caching_size_of(bytes[i]);
    uint32_t x = 9, y = 9;
    for (int n = 0; n < 3; n++) {
      sn_status status = n == 0   ? sn_caching_pass_size(c, &size, &err)
                         : n == 1 ? sn_caching_take_size(c, &size, &x, &err)
                                  : sn_caching_keep_size(c, &size, &err);
      sn_status plain = n == 0   ? sn_caching_pass(same, bytes[i], &told)
                        : n == 1 ? sn_caching_take(same, bytes[i], &y, &told)
                                 : sn_caching_keep(same, bytes[i], &told);
      assert_int_equal(status, plain);
      assert_int_equal(err.code, SN_OK);
      assert_int_equal(told.code, plain);
      told = (sn_err)SN_ERR_INIT;
      assert_memory_equal(sn_caching_look(c), sn_caching_look(same), sizeof(sn_caching_figures));
    }
    assert_int_equal(x, y);
    assert_int_equal(size.bytes, bytes[i] > 64 * MIB ? UINT64_MAX : (bytes[i] + 511) / 512 * 512);
    sn_caching_free(c);
    sn_caching_free(same);
  }
}

/* Segments go back when the driver has no more, those alone that are free as a whole. */
static void free_segments_go_back(void **state) {
  (void)state;
  sn_caching *c = open_caching(64 * MIB, (sn_caching_options){0});
  sn_err err = SN_ERR_INIT;
  uint32_t a = take(c, 30 * MIB), b = take(c, 2 * MIB), d = take(c, 2 * MIB), e = take(c, 100), none = 1;
  check(c, 34 * MIB + 512, 52 * MIB, 3);
  give(c, a);
  give(c, b);
  uint32_t f = take(c, 40 * MIB); /* the 30 MiB go back, the 20 MiB of d do not */
  check(c, 42 * MIB + 512, 62 * MIB, 3);
  assert_int_equal(sn_caching_look(c)->retries, 1);
  assert_int_equal(sn_caching_take(c, 20 * MIB, &none, &err), SN_NO_FIT);
  assert_string_equal(err.text, "20.00 MiB are asked for; of 64.00 MiB there are 62.00 MiB reserved, 42.00 MiB "
                                "allocated, largest free block 16.00 MiB");
  assert_int_equal(none, 0);
  assert_int_equal(sn_caching_look(c)->retries, 2);
  take(c, 16 * MIB); /* goes on: what is behind d */
  give(c, f);
  give(c, d);
  give(c, e);
  assert_int_equal(sn_caching_look(c)->reserved_peak, 62 * MIB);
  sn_caching_reset_peaks(c);
  assert_int_equal(sn_caching_look(c)->allocated_peak, 16 * MIB);
  sn_caching_free(c);
}

static void too_much(void **state) {
  (void)state;
  sn_caching *c = open_caching(SN_CACHING_NO_LIMIT, (sn_caching_options){0});
  uint32_t block;
  for (int expandable = 0; expandable < 2; expandable++) {
    sn_err err = SN_ERR_INIT;
    assert_int_equal(sn_caching_take(c, UINT64_MAX, &block, &err), SN_NO_FIT);
    sn_caching_free(c);
    c = open_caching(SN_CACHING_NO_LIMIT, (sn_caching_options){.expandable_segments = true});
  }
  take(c, UINT64_C(1) << 58);
  check(c, UINT64_C(1) << 58, (((UINT64_C(1) << 58) + 20 * MIB - 1) / (20 * MIB)) * (20 * MIB), 1);
  sn_caching_free(c);
}

/* What is as large as max_split_bytes is never cut, nor taken by what is smaller. */
static void max_split(void **state) {
  (void)state;
  sn_err err = SN_ERR_INIT;
  assert_null(sn_caching_new(MIB, &(sn_caching_options){.max_split_bytes = 20 * MIB}, &err));
  assert_int_equal(err.code, SN_BAD_USAGE);
  sn_caching *c = open_caching(150 * MIB, (sn_caching_options){.max_split_bytes = 30 * MIB});
  uint32_t a = take(c, 60 * MIB), b = take(c, 35 * MIB + 1); /* 36 MiB, all of it */
  check(c, 96 * MIB, 96 * MIB, 2);
  give(c, a);
  take(c, 12 * MIB); /* not of the 60 MiB */
  take(c, 40 * MIB); /* nor this: smaller by 20 MiB */
  check(c, 88 * MIB, 148 * MIB, 4);
  take(c, 41 * MIB); /* this takes all 60 */
  check(c, 148 * MIB, 148 * MIB, 4);
  give(c, b);
  take(c, 12 * MIB); /* the 36 MiB go back alone: no retry */
  check(c, 124 * MIB, 124 * MIB, 4);
  assert_int_equal(sn_caching_look(c)->retries, 0);
  sn_caching_free(c);
}

/* Pages of one segment: what lies free as a whole in the middle can be had again anywhere. */
static void expandable(void **state) {
  (void)state;
  sn_caching *c = open_caching(100 * MIB, (sn_caching_options){.expandable_segments = true});
  uint32_t a = take(c, 50 * MIB);
  check(c, 50 * MIB, 60 * MIB, 1);
  uint32_t b = take(c, 30 * MIB); /* begins in the third page */
  assert_int_equal(sn_caching_extent(c, b).offset, 50 * MIB);
  check(c, 80 * MIB, 80 * MIB, 1);
  give(c, a);
  take(c, 60 * MIB); /* 9/8 of the limit are too few addresses: a second segment, for which two pages of a go back */
  check(c, 90 * MIB, 100 * MIB, 2);
  assert_int_equal(sn_caching_look(c)->retries, 1);
  assert_int_equal(sn_caching_look(c)->reserved_peak, 100 * MIB);
  sn_caching_free(c);
}

/* What one stream has given back serves no other: neither large blocks nor small ones. */
static void streams_share_nothing(void **state) {
  (void)state;
  for (int expandable = 0; expandable < 2; expandable++) {
    sn_caching *c =
        open_caching(200 * MIB, (sn_caching_options){.expandable_segments = expandable, .streams = SN_CACHING_STREAMS});
    uint64_t large = 0, small = 0;
    for (uint32_t stream = 0; stream < SN_CACHING_STREAMS; stream++) {
      give(c, take_on(c, 12 * MIB, stream));
      give(c, take_on(c, 100, stream));
      large += (expandable ? 20 : 12) * MIB;
      small += 2 * MIB;
      check(c, 0, large + small, 2 * (stream + 1));
    }
    assert_int_equal(sn_caching_extent(c, take_on(c, 12 * MIB, 1)).bytes, 12 * MIB); /* its own */
    check(c, 12 * MIB, large + small, 6);
    take_on(c, 12 * MIB, 1); /* not of 0's or 2's, which are free */
    check(c, 24 * MIB, large + small + (expandable ? 20 : 12) * MIB, expandable ? 6 : 7);
    take(c, 12 * MIB); /* stream 0, unless said */
    check(c, 36 * MIB, large + small + (expandable ? 20 : 12) * MIB, expandable ? 6 : 7);
    sn_caching_free(c);
  }
}

/* All streams' segments go back where the driver has no more, of one as of several. */
static void free_segments_of_all_streams_go_back(void **state) {
  (void)state;
  for (int expandable = 0; expandable < 2; expandable++) {
    sn_caching *c =
        open_caching(100 * MIB, (sn_caching_options){.expandable_segments = expandable, .streams = SN_CACHING_STREAMS});
    uint32_t blocks[SN_CACHING_STREAMS];
    for (uint32_t stream = 0; stream < SN_CACHING_STREAMS; stream++) blocks[stream] = take_on(c, 20 * MIB, stream);
    check(c, 60 * MIB, 60 * MIB, 3);
    give(c, blocks[0]);
    give(c, blocks[2]);
    take_on(c, 80 * MIB, 1); /* beside the 20 MiB of its own that are in use */
    check(c, 100 * MIB, 100 * MIB, expandable ? 1 : 2);
    assert_int_equal(sn_caching_look(c)->retries, 1);
    sn_caching_free(c);
  }
}

/* Before that blocks that are not cut go back, which are of the stream alone that asks. */
static void uncut_of_one_stream_go_back(void **state) {
  (void)state;
  sn_caching *c =
      open_caching(130 * MIB, (sn_caching_options){.max_split_bytes = 30 * MIB, .streams = SN_CACHING_STREAMS});
  give(c, take_on(c, 60 * MIB, 0));
  give(c, take_on(c, 60 * MIB, 1));
  take_on(c, 36 * MIB, 1); /* too small for the 60, which go back */
  check(c, 36 * MIB, 96 * MIB, 2);
  assert_int_equal(sn_caching_look(c)->retries, 0);
  take_on(c, 50 * MIB, 2); /* has none: all go back */
  check(c, 86 * MIB, 86 * MIB, 2);
  assert_int_equal(sn_caching_look(c)->retries, 1);
  sn_caching_free(c);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(one_request),
      cmocka_unit_test(nothing_is_nothing),
      cmocka_unit_test(best_fit),
      cmocka_unit_test(neighbours_join),
      cmocka_unit_test(sizes),
      cmocka_unit_test(free_segments_go_back),
      cmocka_unit_test(too_much),
      cmocka_unit_test(max_split),
      cmocka_unit_test(expandable),
      cmocka_unit_test(streams_share_nothing),
      cmocka_unit_test(free_segments_of_all_streams_go_back),
      cmocka_unit_test(uncut_of_one_stream_go_back),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
