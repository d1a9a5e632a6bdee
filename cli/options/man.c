/* The manual page, snsim(1), as roff for the man macros: printed by `snsim help --man`, installed by the build. All of
 * it comes from the tables of commands and options, but for the environment and the files. */
#include "cli/options/options.h"

#include <ctype.h>
#include <string.h>

/* ---- text ---- */

/* A hyphen that begins a word belongs to an option; groff then needs to be told that it is a minus. */
static void put_character(FILE *out, char before, char c) {
  if (c == '\\')
    fputs("\\e", out);
  else if (c == '~')
    fputs("\\(ti", out);
  else if (c == '-' && !isalnum((unsigned char)before))
    fputs("\\-", out);
  else
    putc(c, out);
}

/* One line of text: `words` between backquotes bold, nothing taken for a request. */
static void put_line(FILE *out, const char *text, size_t length) {
  bool bold = false;
  if (length > 0 && (text[0] == '.' || text[0] == '\'')) fputs("\\&", out);
  for (size_t i = 0; i < length; i++) {
    if (text[i] == '`')
      fputs((bold = !bold) ? "\\fB" : "\\fR", out);
    else
      put_character(out, i > 0 ? text[i - 1] : ' ', text[i]);
  }
  putc('\n', out);
}

/* Paragraphs parted by newlines. */
static void put_text(FILE *out, const char *text, const char *between) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    put_line(out, text, length);
    text += length;
    if (*text == '\n') {
      fputs(between, out);
      text++;
    }
  }
}

static void put_examples(FILE *out, const char *examples) {
  fputs(".PP\n.EX\n", out);
  put_text(out, examples, "");
  fputs(".EE\n", out);
}

/* ---- commands ---- */

static void put_command(FILE *out, const sn_command *command) {
  fprintf(out, ".SS %s\n.PP\n\\fB", command->name);
  put_line(out, command->synopsis, strlen(command->synopsis));
  fputs("\\fR\n.PP\n", out);
  put_text(out, command->description, ".PP\n");
  put_examples(out, command->examples);
}

static void put_synopsis(FILE *out) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  fputs(".SH SYNOPSIS\n", out);
  for (uint32_t i = 0; i < count; i++) {
    if (i > 0) fputs(".br\n", out);
    put_line(out, commands[i].synopsis, strlen(commands[i].synopsis));
  }
}

static void put_commands(FILE *out) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  fputs(".SH COMMANDS\n", out);
  for (uint32_t i = 0; i < count; i++) put_command(out, &commands[i]);
}

/* ---- options ---- */

/* Which commands take it, where not all do. */
static void put_takers(FILE *out, const sn_option *option) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  const char *separator = "With ";
  if (option->commands == SN_CMD_ALL) return;
  for (uint32_t i = 0; i < count; i++) {
    if (!sn_option_belongs(option, &commands[i])) continue;
    fprintf(out, "%s\\fI%s\\fR", separator, commands[i].name);
    separator = ", ";
  }
  fputs(".\n", out);
}

static void put_option(FILE *out, const sn_option *option) {
  fputs(".TP\n", out);
  if (option->letter) fprintf(out, "\\fB\\-%c\\fR, ", option->letter);
  fputs("\\fB\\-\\-", out);
  for (const char *c = option->name; *c; c++) fputs(*c == '-' ? "\\-" : (char[]){*c, '\0'}, out);
  fprintf(out, "\\fR%s%s%s\n", option->argument ? " \\fI" : "", option->argument ? option->argument : "",
          option->argument ? "\\fR" : "");
  put_text(out, option->help, ".IP\n");
  put_takers(out, option);
}

static void put_options(FILE *out) {
  const char *group = "";
  fputs(".SH OPTIONS\n", out);
  for (const sn_option *o = sn_option_next(NULL, NULL); o; o = sn_option_next(NULL, o)) {
    if (strcmp(group, o->group) != 0) fprintf(out, ".SS %s\n", group = o->group);
    put_option(out, o);
  }
}

/* ---- what is in no table ---- */

/* "0  done": the words behind the two blanks explain those before. */
static void put_statuses(FILE *out) {
  fputs(".SH EXIT STATUS\n", out);
  for (const char *line = sn_help_statuses; *line;) {
    size_t length = strcspn(line, "\n");
    const char *blanks = strstr(line, "  ");
    fprintf(out, ".TP\n\\fB%.*s\\fR\n", (int)(blanks - line), line);
    put_line(out, blanks + 2, length - (size_t)(blanks + 2 - line));
    line += length + (line[length] == '\n');
  }
  fputs(".PP\n", out);
  put_text(out, sn_help_stored, ".PP\n");
}

static const char surroundings[] =
    ".SH ENVIRONMENT\n"
    ".TP\n\\fBXDG_DATA_HOME\\fR\nWhere the database is: its folder \\fIsnsim\\fR.\n"
    ".TP\n\\fBNO_COLOR\\fR\nNo colour and no progress where it is set and not empty.\n"
    ".TP\n\\fBCOLUMNS\\fR\nWidth of the terminal, instead of what it says itself.\n"
    ".TP\n\\fBPATH\\fR\nWhere \\fBgnuplot\\fR is looked for.\n"
    ".SH FILES\n"
    ".TP\n\\fI\\(ti/.local/share/snsim/runs.db\\fR\nThe stored runs, an SQLite database.\n"
    ".SH SEE ALSO\n"
    ".BR gnuplot (1),\n.BR sqlite3 (1)\n";

void sn_man_write(FILE *out) {
  fputs(".TH SNSIM 1 \"\" \"snsim " SNSIM_VERSION "\" \"User Commands\"\n"
        ".SH NAME\nsnsim \\- memory simulator and capacity planner for neural-network training\n",
        out);
  put_synopsis(out);
  fputs(".SH DESCRIPTION\n", out);
  put_text(out, sn_help_purpose, ".PP\n");
  put_commands(out);
  put_options(out);
  fputs(".PP\n", out);
  put_text(out, sn_help_repeated, ".PP\n");
  put_statuses(out);
  fputs(surroundings, out);
}
