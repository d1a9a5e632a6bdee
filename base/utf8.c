/* UTF-8 characters and their classes; see the header. Tables of ranges, searched from the start: they are short, and
 * most text is ASCII, found at once. */
#include "base/utf8.h"

typedef struct range {
  uint32_t first, last;
} range;

static const range controls[] = {
    {0, 0x1F},        {0x7F, 0x9F},     {0xAD, 0xAD},     {0x61C, 0x61C},   {0x180E, 0x180E},   {0x200B, 0x200F},
    {0x2028, 0x202E}, {0x2060, 0x206F}, {0xFEFF, 0xFEFF}, {0xFFF9, 0xFFFB}, {0xE0000, 0xE007F},
};

static const range blanks[] = {
    {0x20, 0x20},     {0xA0, 0xA0},     {0x1680, 0x1680}, {0x2000, 0x200A},
    {0x202F, 0x202F}, {0x205F, 0x205F}, {0x3000, 0x3000},
};

static const range marks[] = {
    {0x300, 0x36F},   {0x483, 0x489},   {0x591, 0x5BD},   {0x610, 0x61A},   {0x64B, 0x65F},   {0x1160, 0x11FF},
    {0x1AB0, 0x1AFF}, {0x1DC0, 0x1DFF}, {0x20D0, 0x20FF}, {0x3099, 0x309A}, {0xFE00, 0xFE0F}, {0xFE20, 0xFE2F},
};

static const range wide[] = {
    {0x1100, 0x115F},   {0x2E80, 0x303E},   {0x3041, 0xA4CF},   {0xA960, 0xA97C},   {0xAC00, 0xD7A3},
    {0xF900, 0xFAFF},   {0xFE10, 0xFE19},   {0xFE30, 0xFE6B},   {0xFF01, 0xFF60},   {0xFFE0, 0xFFE6},
    {0x16FE0, 0x1B2FF}, {0x1F300, 0x1F64F}, {0x1F680, 0x1F6FF}, {0x1F900, 0x1FAFF}, {0x20000, 0x3FFFD},
};

static bool is_among(uint32_t point, const range *ranges, size_t count) {
  for (size_t i = 0; i < count && ranges[i].first <= point; i++)
    if (point <= ranges[i].last) return true;
  return false;
}

#define IS_AMONG(point, ranges) is_among(point, ranges, sizeof(ranges) / sizeof(ranges)[0])

size_t sn_utf8_next(const char *text, uint32_t *point) {
  static const uint32_t least[] = {0, 0, 0x80, 0x800, 0x10000}; /* of a sequence of so many bytes */
  const unsigned char *at = (const unsigned char *)text;
  *point = at[0];
  if (at[0] < 0x80) return 1;
  size_t length = at[0] >> 5 == 6 ? 2 : at[0] >> 4 == 14 ? 3 : at[0] >> 3 == 30 ? 4 : 0;
  *point &= 0x7Fu >> length;
  for (size_t i = 1; i < length; i++) {
    if (at[i] >> 6 != 2) return 0; /* also at the NUL that ends the text */
    *point = *point << 6 | (at[i] & 0x3Fu);
  }
  bool surrogate = *point >> 11 == 0x1B;
  return *point >= least[length] && *point <= 0x10FFFF && !surrogate ? length : 0;
}

bool sn_utf8_is_control(uint32_t point) {
  return IS_AMONG(point, controls);
}

bool sn_utf8_is_blank(uint32_t point) {
  return IS_AMONG(point, blanks);
}

unsigned sn_utf8_width(uint32_t point) {
  if (IS_AMONG(point, marks)) return 0;
  return IS_AMONG(point, wide) ? 2 : 1;
}

char *sn_utf8_clean(char *text) {
  uint32_t point;
  for (char *at = text; *at;) {
    size_t length = sn_utf8_next(at, &point);
    bool good = length > 0 && !sn_utf8_is_control(point);
    if (good) at += length;
    for (size_t i = 0; !good && i < (length ? length : 1); i++) *at++ = '?';
  }
  return text;
}
