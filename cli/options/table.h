/* Aligned tables for people: headings of up to two lines, numbers to the right, text to the left.
 *
 *   static const sn_table_column columns[] = {{"", "net", SN_TABLE_TEXT}, {"peak", "MiB", SN_TABLE_NUMBER}};
 *   sn_table *table = sn_table_new(columns, 2);
 *   sn_table_cell(table, "%s", "alexnet");
 *   sn_table_cell(table, "%.3f", 886.230);
 *   status = sn_table_print(table, stdout, false, &err);
 *   sn_table_free(table);
 *
 * Cells are given row by row, each printf style. A failed allocation sticks: later calls do nothing and printing
 * reports it, NULL tables included.
 */
#ifndef SN_CLI_OPTIONS_TABLE_H
#define SN_CLI_OPTIONS_TABLE_H

#include "base/err.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

/* Numbers stand to the right, text to the left; a gap is two spaces in front instead of one. Text that wraps, in the
 * last column, goes on in further lines where there is no room for it. */
enum { SN_TABLE_NUMBER = 0, SN_TABLE_TEXT = 1, SN_TABLE_GAP = 2, SN_TABLE_WRAP = 4 };
/* A column that a narrow terminal does without: the lowest rank, from 1, goes first, all columns of one rank together.
 */
#define SN_TABLE_SPARE(rank) ((unsigned)(rank) << 8)

typedef struct sn_table_column {
  const char *top, *heading; /* the two lines; a table whose tops are all "" has one */
  unsigned style;            /* SN_TABLE_NUMBER or SN_TABLE_TEXT, | the others */
} sn_table_column;

typedef struct sn_table sn_table;

/* The columns are looked at as long as the table lives. */
sn_table *sn_table_new(const sn_table_column *columns, uint32_t n_columns);
void sn_table_free(sn_table *table);

/* The next cell, left to right, top to bottom. */
void sn_table_cell(sn_table *table, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* The next cell is a time, a speed or a price: three digits, as no model of these has more; "-" where it is not known. */
void sn_table_figure(sn_table *table, bool known, double value);
/* The same with four digits, where rows of one front differ by less. */
void sn_table_fine_figure(sn_table *table, double value);
/* The row of the last cell is printed dim where there is colour. */
void sn_table_dim(sn_table *table);

/* How wide the lines are, by their widest cells, and columns that are not to be printed. */
uint32_t sn_table_width(const sn_table *table);
void sn_table_hide(sn_table *table, uint32_t column);

/* Makes lines no wider than `columns` (0: they may have any width), as far as spare columns and
 * wrapping text go. */
void sn_table_fit(sn_table *table, unsigned columns);
/* "left out for want of width: cache, frag; ..", by the first column of each rank; nothing where nothing was. */
void sn_table_print_left_out(const sn_table *table, FILE *out);

/* SN_NO_MEMORY where a cell was lost; errors of `out` are left to whoever closes it. */
sn_status sn_table_print(const sn_table *table, FILE *out, bool color, sn_err *err);

/* Makes text safe for a terminal, in place: control characters and bytes that are no UTF-8 become '?'. Returns text. */
char *sn_table_clean(char *text);
/* Prints up to 511 bytes of a text that may come from a stranger's file. */
void sn_table_print_clean(FILE *out, const char *text);
/* fprintf() of up to 2 KiB that may hold texts of others: made safe line by line. */
void sn_table_printf(FILE *out, const char *format, ...) __attribute__((format(printf, 2, 3)));

#endif
