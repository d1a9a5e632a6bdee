/* `snsim help [COMMAND|superneurons]`, --help and --version, printed from the tables of commands and options. Lines are
 * 80 columns wide whatever the terminal, so that the text is the same everywhere. */
#include "cli/options/options.h"
#include "sim/policy/strategy.h"

#include <stdio.h>
#include <string.h>

enum { WIDTH = 80, OPTION_COLUMN = 26 };

const char sn_help_purpose[] =
    "snsim answers before anyone buys GPU hours: will this network train on this GPU, which memory strategy makes it "
    "fit, and what does that cost in time and traffic? It knows convolutional networks and transformers (GPT-2, BERT, "
    "ViT, Swin, T5, Llama), and yours from JSON or ONNX; it trains them by SGD, Adam or AdamW on one GPU, in "
    "float32, in numbers of two bytes, or in PyTorch's mixed precision.";
const char sn_help_statuses[] = "0  done\n1  nothing that was asked for fits\n2  the command line is wrong\n"
                                "3  a file is wrong, or cannot be read or written\n4  a device or the machine failed\n"
                                "5  a bug in snsim: please report it\n"
                                "130 (SIGINT), 143 (SIGTERM)  interrupted; what was finished is kept\n"
                                "141 (SIGPIPE)  whoever read the output stopped reading";
const char sn_help_stored[] = "A run is stored before it is printed, so it is also kept where printing fails.";
const char sn_help_repeated[] =
    "An option of one value that is given again counts as given last, so that a script's command can be overridden "
    "behind it; lists, written ,.. above, add up.";

/* Prints `text` from column `at` on, its lines wrapped and indented; a newline in it begins a paragraph. */
static void print_wrapped(FILE *out, const char *text, size_t indent, size_t at) {
  bool first = true;
  while (*text) {
    size_t length = strcspn(text, " \n");
    if (!first && at + 1 + length > WIDTH) {
      fprintf(out, "\n%*s", (int)indent, "");
      at = indent;
      first = true;
    }
    fprintf(out, "%s%.*s", first ? "" : " ", (int)length, text);
    at += length + !first;
    first = false;
    text += length;
    if (*text == '\n') {
      fprintf(out, "\n\n%*s", (int)indent, "");
      at = indent;
      first = true;
    }
    text += *text != '\0';
  }
  fputs("\n", out);
}

static void print_title(const sn_out *out, const char *title) {
  fprintf(out->stream, "\n%s%s%s\n", out->color ? "\033[1m" : "", title, out->color ? "\033[0m" : "");
}

/* Prints what of "a|b|c.." fills whole lines, cut behind a |, and leaves the rest, which goes on at `indent`. */
static void print_words(FILE *out, char *text, size_t indent) {
  while (strlen(text) > WIDTH) {
    size_t cut = WIDTH;
    while (cut > indent && text[cut - 1] != '|') cut--;
    if (cut == indent) break;
    fprintf(out, "%.*s\n", (int)cut, text);
    memmove(text + indent, text + cut, strlen(text + cut) + 1);
    memset(text, ' ', indent);
  }
}

static void print_option(const sn_option *o, FILE *out) {
  char left[200], letter[8] = "    ";
  if (o->letter) snprintf(letter, sizeof letter, "-%c, ", o->letter);
  int begin = snprintf(left, sizeof left, "  %s--%s ", letter, o->name);
  snprintf(left + begin, sizeof left - (size_t)begin, "%s", o->argument ? o->argument : "");
  if (!o->argument) left[begin - 1] = '\0';
  print_words(out, left, (size_t)begin);
  fprintf(out, "%-*s", OPTION_COLUMN - 1, left);
  if (strlen(left) < OPTION_COLUMN)
    fputs(" ", out);
  else
    fprintf(out, "\n%*s", OPTION_COLUMN, "");
  print_wrapped(out, o->help, OPTION_COLUMN, OPTION_COLUMN);
}

static void print_options(const sn_command *command, const sn_out *out) {
  const char *group = "";
  for (const sn_option *o = sn_option_next(command, NULL); o; o = sn_option_next(command, o)) {
    if (strcmp(group, o->group) != 0) print_title(out, group = o->group);
    print_option(o, out->stream);
  }
}

static void print_lines(const char *text, FILE *out) {
  while (*text) {
    size_t length = strcspn(text, "\n");
    fprintf(out, "  %.*s\n", (int)length, text);
    text += length + (text[length] == '\n');
  }
}

static void print_statuses(const sn_out *out) {
  print_title(out, "Exit status");
  print_lines(sn_help_statuses, out->stream);
}

static void print_command(const sn_command *command, const sn_out *out) {
  FILE *f = out->stream;
  fprintf(f, "Usage: %s\n\n", command->synopsis);
  print_wrapped(f, command->description, 0, 0);
  print_options(command, out);
  print_title(out, "Examples");
  print_lines(command->examples, f);
  print_statuses(out);
}

/* What no command's help tells. */
static const struct topic {
  const char *name, *text;
} topics[] = {
    {"superneurons",
     "SuperNeurons (Wang et al., PPoPP 2018) is a runtime of its own that trains what is larger than the GPU. Below "
     "the "
     "answer for PyTorch simulate shows what that runtime would make of the same network and batch, by its own rules: "
     "another graph than PyTorch's, a pool that is filled by first fit, workspaces of convolutions where there is "
     "room. Nobody has to run it to train in PyTorch; it shows what else is possible, and what it costs.\n"
     "--for superneurons asks about it alone, of simulate, fit, advise, sweep, plot and report; networks are the "
     "papers' then (paper:resnet50, not torchvision's). --for all asks about both. The columns are explained in snsim "
     "help simulate. Its strategies:"},
};

static const struct topic *find_topic(const char *name) {
  for (size_t i = 0; name && i < sizeof topics / sizeof topics[0]; i++)
    if (strcmp(topics[i].name, name) == 0) return &topics[i];
  return NULL;
}

static void print_topic(const struct topic *topic, const sn_out *out) {
  char name[SN_STRATEGY_TEXT];
  print_wrapped(out->stream, topic->text, 0, 0);
  fputs("\n", out->stream);
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++) {
    sn_strategy s = sn_strategy_default(i);
    fprintf(out->stream, "  %s\n%*s", sn_strategy_name(s, name), 6, "");
    print_wrapped(out->stream, sn_strategy_summary(s), 6, 6);
  }
  print_title(out, "Examples");
  print_lines("snsim --net resnet50 --batch 64 --gpu k40c --for superneurons\n"
              "snsim fit --max batch --net vgg16 --for superneurons\n"
              "snsim list strategies",
              out->stream);
}

static void print_overview(const sn_out *out) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  FILE *f = out->stream;
  fprintf(f, "Usage: %s\n       snsim COMMAND ...\n\n", commands[0].synopsis);
  print_wrapped(f, sn_help_purpose, 0, 0);
  print_title(out, "Commands");
  for (uint32_t i = 0; i < count; i++) {
    fprintf(f, "  %-*s", OPTION_COLUMN - 2, commands[i].name);
    print_wrapped(f, commands[i].summary, OPTION_COLUMN, OPTION_COLUMN);
  }
  print_options(&commands[0], out);
  print_title(out, "Examples");
  print_lines(commands[0].examples, f);
  print_statuses(out);
  fprintf(f, "\n%s\n\n", sn_help_stored);
  print_wrapped(f, sn_help_repeated, 0, 0);
  fputs("\nsnsim help COMMAND says more; snsim help simulate explains the table.\n"
        "snsim help superneurons tells of its runtime and strategies.\n",
        f);
}

static sn_status print_help(const sn_args *args, const sn_out *out, sn_err *err) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  const sn_command *help = sn_command_find("help", err), *about = args->command;
  const struct topic *topic = about == help && !args->help ? find_topic(args->operand) : NULL;
  if (topic) {
    print_topic(topic, out);
    return SN_OK;
  }
  if (about == help && !args->help) about = args->operand ? sn_command_find(args->operand, err) : NULL;
  if (err->code != SN_OK) return err->code;
  if (about && !(about == commands && args->help))
    print_command(about, out);
  else
    print_overview(out);
  return SN_OK;
}

sn_status sn_cli_help(const sn_args *args, sn_err *err) {
  sn_out out;
  if (args->man && args->operand)
    return sn_fail(err, SN_BAD_USAGE, "--man is one page of all commands, not of %.80s alone", args->operand);
  if (sn_out_open(&out, args->output, args->color, err) != SN_OK) return err->code;
  if (args->version)
    fputs("snsim " SNSIM_VERSION "\n", out.stream);
  else if (args->man)
    sn_man_write(out.stream);
  else
    print_help(args, &out, err);
  return sn_out_close(&out, err);
}
