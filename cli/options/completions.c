/* `snsim completions bash|zsh|fish`: scripts that complete commands, options, networks, GPUs, strategies, runs and
 * files, made from the tables of commands and options.
 *
 * Each script is a fixed text that goes along the words typed so far, and lists made here: which options a command
 * takes, what the value of an option or an operand may be. The last is said in kinds, as in the tables: "NET|FILE",
 * "bash|zsh|fish"; the scripts know the words of a kind, and ask `snsim show` for the runs and sweeps there are. Of
 * "NET|FILE.json,..", a list parted by commas, the last item is completed. A word that is not complete, a family of
 * networks with its parameters for one, is left to the user. */
#include "cli/options/options.h"

#include "base/text.h"
#include "models/zoo/zoo.h"
#include "sim/device/device.h"

#include <string.h>

/* ---- words of each kind ---- */

static void put_nets(FILE *out, const char *separator) {
  uint32_t count;
  const sn_zoo_entry *entries = sn_zoo_entries(&count);
  for (uint32_t i = 0; i < count; i++) fprintf(out, "%s%s", i ? separator : "", entries[i].name);
}

static void put_gpus(FILE *out, const char *separator) {
  sn_device device;
  sn_err err = SN_ERR_INIT; /* devices compiled in that cannot be read are told by a test */
  for (uint32_t i = 0; i < sn_device_count(); i++)
    if (sn_device_known(i, &device, &err) == SN_OK) fprintf(out, "%s%s", i ? separator : "", device.name);
}

static void put_strategies(FILE *out, const char *separator) {
  char name[SN_STRATEGY_TEXT];
  fputs("superneurons", out);
  for (uint32_t i = 0; i < SN_STRATEGY_DEFAULTS; i++)
    fprintf(out, "%s%s", separator, sn_strategy_name(sn_strategy_default(i), name));
  for (uint32_t i = 0; i < SN_STRATEGY_SYSTEMS; i++)
    fprintf(out, "%s%s", separator, sn_strategy_name(sn_strategy_system(i), name));
  for (uint32_t i = 0; i < SN_STRATEGY_FRAMEWORKS; i++)
    fprintf(out, "%s%s", separator, sn_strategy_name(sn_strategy_framework(i), name));
}

static void put_commands(FILE *out, const char *separator) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  for (uint32_t i = 0; i < count; i++) fprintf(out, "%s%s", i ? separator : "", commands[i].name);
}

static const struct kind {
  const char *name;
  void (*put)(FILE *out, const char *separator);
} kinds[] = {{"NET", put_nets}, {"GPU", put_gpus}, {"S", put_strategies}, {"COMMAND", put_commands}};

enum { N_KINDS = sizeof kinds / sizeof kinds[0] };

/* ---- parts of the tables ---- */

/* Whether an option of that name stood in an earlier row: the first row speaks for all, but for who takes it. */
static bool stood_before(const sn_option *options, uint32_t at) {
  for (uint32_t i = 0; i < at; i++)
    if (strcmp(options[i].name, options[at].name) == 0) return true;
  return false;
}

/* What goes between names, e.g. "-o|--output". */
static void put_names(FILE *out, const sn_option *option, const char *separator) {
  if (option->letter) fprintf(out, "-%c%s", option->letter, separator);
  fprintf(out, "--%s", option->name);
}

/* The names of all options that take a value. */
static void put_valued(FILE *out, const char *separator) {
  uint32_t count;
  const sn_option *options = sn_option_table(&count);
  bool begun = false;
  for (uint32_t i = 0; i < count; i++) {
    if (!options[i].argument || stood_before(options, i)) continue;
    if (begun) fputs(separator, out);
    put_names(out, &options[i], separator);
    begun = true;
  }
}

/* What one operand of a command may be: "[RUN].." and "RUN RUN" are both RUN. */
static void put_operand(FILE *out, const char *operand) {
  const char *begin = operand + (operand[0] == '[');
  fprintf(out, "%.*s", (int)strcspn(begin, " ]"), begin);
}

/* A help text's first clause, with a backslash before every one of `escaped`. */
static void put_clause(FILE *out, const char *text, const char *escaped) {
  for (; *text && *text != ';'; text++) {
    bool end = text[1] == '\0' || text[1] == ' ';
    if ((*text == '.' || *text == ':') && end) break;
    if (text[0] == ' ' && text[1] == '(') break;
    if (strchr(escaped, *text)) putc('\\', out);
    if (*text == '\'') fputs("'\\'", out); /* a quote ends what is quoted, in zsh and in fish */
    putc(*text, out);
  }
}

/* ---- bash ---- */

static void put_bash_lists(FILE *out) {
  uint32_t n_commands, n_options;
  const sn_command *commands = sn_command_table(&n_commands);
  const sn_option *options = sn_option_table(&n_options);
  fputs("\n# _snsim_options COMMAND\n_snsim_options() {\n  case $1 in\n", out);
  for (uint32_t c = 0; c < n_commands; c++) {
    fprintf(out, "  %s) echo '", commands[c].name);
    for (uint32_t i = 0; i < n_options; i++)
      if (sn_option_belongs(&options[i], &commands[c])) fprintf(out, " --%s", options[i].name);
    fputs("' ;;\n", out);
  }
  fputs("  esac\n}\n\n# _snsim_value OPTION: the kinds of its value\n_snsim_value() {\n  case $1 in\n", out);
  for (uint32_t i = 0; i < n_options; i++) {
    if (!options[i].argument || stood_before(options, i)) continue;
    fputs("  ", out);
    put_names(out, &options[i], " | ");
    fprintf(out, ") echo '%s' ;;\n", options[i].argument);
  }
  fputs("  esac\n}\n\n# _snsim_operand COMMAND: the kinds of its operands\n_snsim_operand() {\n  case $1 in\n", out);
  fputs("  '') echo COMMAND ;;\n", out);
  for (uint32_t c = 0; c < n_commands; c++) {
    if (!commands[c].operand) continue;
    fprintf(out, "  %s) echo '", commands[c].name);
    put_operand(out, commands[c].operand);
    fputs("' ;;\n", out);
  }
  fputs("  esac\n}\n\n# _snsim_words KIND\n_snsim_words() {\n  case $1 in\n", out);
  for (uint32_t k = 0; k < N_KINDS; k++) {
    fprintf(out, "  %s) echo '", kinds[k].name);
    kinds[k].put(out, " ");
    fputs("' ;;\n", out);
  }
  fputs("  RUN) echo last; snsim show 2>/dev/null | awk 'NR > 1 { print $1 }' ;;\n"
        "  SWEEP) echo sweep:last; snsim show sweeps 2>/dev/null | awk 'NR > 1 { print \"sweep:\" $1 }' ;;\n"
        "  *[A-Z]*) ;;\n"
        "  *) echo \"$1\" ;;\n"
        "  esac\n}\n",
        out);
}

static const char bash_body[] =
    "\n# _snsim_offer KINDS WORD: what begins with WORD, one a line\n"
    "_snsim_offer() {\n"
    "  local kind kinds=${1%,..} word=$2 head=\n"
    "  if [[ $1 = *,.. && $2 = *,* ]]; then\n"
    "    head=${2%,*},\n"
    "    word=${2##*,}\n"
    "  fi\n"
    "  for kind in ${kinds//|/ }; do\n"
    "    if [[ $kind = FILE* ]]; then\n"
    "      compgen -P \"$head\" -d -- \"$word\"\n"
    "      compgen -P \"$head\" -f -X \"!*${kind#FILE}\" -- \"$word\"\n"
    "    else\n"
    "      compgen -P \"$head\" -W \"$(_snsim_words \"$kind\")\" -- \"$word\"\n"
    "    fi\n"
    "  done\n"
    "}\n"
    "\n_snsim() {\n"
    "  local line=${COMP_LINE:0:COMP_POINT} command= value= word prefix= breaks= i\n"
    "  local -a words\n"
    "  read -ra words <<<\"$line\" # bash itself would part words at = and :\n"
    "  [[ $line = *[[:space:]] ]] && words+=('')\n"
    "  word=${words[-1]}\n"
    "  for ((i = 1; i < ${#words[@]} - 1; i++)); do\n"
    "    if [[ $value ]]; then\n"
    "      value=\n"
    "    elif [[ ${words[i]} = -* ]]; then\n"
    "      value=$(_snsim_value \"${words[i]}\")\n"
    "    else\n"
    "      command=${command:-${words[i]}}\n"
    "    fi\n"
    "  done\n"
    "  if [[ $value ]]; then\n"
    "    mapfile -t COMPREPLY < <(_snsim_offer \"$value\" \"$word\")\n"
    "    [[ $value = *FILE* ]] && compopt -o filenames 2>/dev/null\n"
    "  elif [[ $word = --*=* ]]; then\n"
    "    prefix=${word%%=*}=\n"
    "    value=$(_snsim_value \"${word%%=*}\")\n"
    "    mapfile -t COMPREPLY < <(_snsim_offer \"$value\" \"${word#*=}\")\n"
    "    [[ $value = *FILE* ]] && compopt -o filenames 2>/dev/null\n"
    "  elif [[ $word = -* ]]; then\n"
    "    mapfile -t COMPREPLY < <(compgen -W \"$(_snsim_options \"${command:-simulate}\")\" -- \"$word\")\n"
    "  else\n"
    "    mapfile -t COMPREPLY < <(_snsim_offer \"$(_snsim_operand \"$command\")\" \"$word\")\n"
    "  fi\n"
    "  # Bash replaces only what stands behind the last of its word breaks.\n"
    "  COMPREPLY=(\"${COMPREPLY[@]/#/$prefix}\")\n"
    "  for i in = :; do [[ $COMP_WORDBREAKS = *$i* ]] && breaks+=$i; done\n"
    "  [[ $breaks ]] && prefix=${word%\"${word##*[$breaks]}\"} || prefix=\n"
    "  COMPREPLY=(\"${COMPREPLY[@]#\"$prefix\"}\")\n"
    "}\n"
    "\ncomplete -F _snsim snsim\n";

static void write_bash(FILE *out) {
  fputs("# bash completion for snsim, made by: snsim completions bash\n"
        "# shellcheck shell=bash disable=SC2207\n",
        out);
  put_bash_lists(out);
  fputs(bash_body, out);
}

/* ---- zsh ---- */

static const char zsh_specials[] = "[]:\\";

/* "'(-o --output)'{-o+,--output=}'[Writes to FILE]:FILE:_snsim_offer \"FILE\"'", as _arguments takes it. */
static void put_zsh_option(FILE *out, const sn_option *o) {
  const char *equals = o->argument ? "=" : "";
  bool repeats = o->argument && strstr(o->argument, ",..");
  fputs("      ", out);
  if (o->letter)
    fprintf(out, "'(-%c --%s)'{-%c%s,--%s%s}'[", o->letter, o->name, o->letter, o->argument ? "+" : "", o->name,
            equals);
  else
    fprintf(out, "'%s--%s%s[", repeats ? "*" : "", o->name, equals);
  put_clause(out, o->help, zsh_specials);
  fputs("]", out);
  if (o->argument) fprintf(out, ":%s:_snsim_offer \"%s\"", o->argument, o->argument);
  fputs("'\n", out);
}

static void put_zsh_command(FILE *out, const sn_command *command) {
  uint32_t count;
  const sn_option *options = sn_option_table(&count);
  fprintf(out, "  %s)\n    specs=(\n", command->name);
  for (uint32_t i = 0; i < count; i++)
    if (sn_option_belongs(&options[i], command)) put_zsh_option(out, &options[i]);
  if (command->operand) {
    fprintf(out, "      '*:%s:_snsim_offer \"", command->name);
    put_operand(out, command->operand);
    fputs("\"'\n", out);
  }
  fputs("    )\n    ;;\n", out);
}

static void put_zsh_offer(FILE *out) {
  fputs("\n_snsim_commands() {\n  local -a commands=(\n", out);
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  for (uint32_t c = 0; c < count; c++) {
    fprintf(out, "    '%s:", commands[c].name);
    put_clause(out, commands[c].summary, zsh_specials);
    fputs("'\n", out);
  }
  fputs("  )\n  _describe command commands\n}\n"
        "\n# _snsim_offer OPTION... KINDS: the options are those of compadd\n_snsim_offer() {\n"
        "  local kind kinds=${@[-1]}\n  local -a offered\n"
        "  [[ $kinds = *,.. ]] && compset -P '*,'\n"
        "  for kind in ${(s:|:)${kinds%,..}}; do\n    case $kind in\n",
        out);
  for (uint32_t k = 0; k < N_KINDS; k++) {
    fprintf(out, "    %s) offered+=(", kinds[k].name);
    kinds[k].put(out, " ");
    fputs(") ;;\n", out);
  }
  fputs("    RUN) offered+=(last ${(f)\"$(snsim show 2>/dev/null | awk 'NR > 1 { print $1 }')\"}) ;;\n"
        "    SWEEP) offered+=(sweep:last ${(f)\"$(snsim show sweeps 2>/dev/null | awk 'NR > 1 { print \"sweep:\" $1 "
        "}')\"}) ;;\n"
        "    FILE) _files \"${@[1,-2]}\" ;;\n"
        "    FILE.*) _files \"${@[1,-2]}\" -g \"*${kind#FILE}\" ;;\n"
        "    *[A-Z]*) ;;\n"
        "    *) offered+=($kind) ;;\n"
        "    esac\n  done\n  compadd \"${@[1,-2]}\" -a offered\n}\n",
        out);
}

static void write_zsh(FILE *out) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  fputs("#compdef snsim\n# zsh completion for snsim, made by: snsim completions zsh\n", out);
  put_zsh_offer(out);
  fputs("\n_snsim() {\n  local command\n  local -i i\n  local -a specs valued=(", out);
  put_valued(out, " ");
  fputs(")\n  for ((i = 2; i < CURRENT; i++)); do\n"
        "    case $words[i] in\n"
        "    -*) (( ${valued[(Ie)$words[i]]} )) && (( i++ )) ;;\n"
        "    *) command=$words[i]; break ;;\n"
        "    esac\n  done\n"
        "  case ${command:-simulate} in\n",
        out);
  for (uint32_t c = 0; c < count; c++) put_zsh_command(out, &commands[c]);
  fputs("  esac\n  _arguments -S \"1:command:_snsim_commands\" $specs\n}\n"
        "\n# Autoloaded by compinit, or sourced.\n"
        "if [[ $funcstack[1] = _snsim ]]; then _snsim \"$@\"; else compdef _snsim snsim; fi\n",
        out);
}

/* ---- fish ---- */

static void put_fish_head(FILE *out) {
  fputs("# fish completion for snsim, made by: snsim completions fish\n"
        "\nfunction __snsim_command --description 'the command typed so far, or none'\n"
        "    set -l skip no\n"
        "    for word in (commandline -opc)[2..-1]\n"
        "        if test $skip = yes\n"
        "            set skip no\n"
        "            continue\n"
        "        end\n"
        "        switch $word\n"
        "            case ",
        out);
  put_valued(out, " ");
  fputs("\n                set skip yes\n"
        "            case '-*'\n"
        "            case '*'\n"
        "                echo $word\n"
        "                return\n"
        "        end\n"
        "    end\n"
        "    echo none\n"
        "end\n"
        "\nfunction __snsim_is\n    contains -- (__snsim_command) $argv\nend\n"
        "\nfunction __snsim_offer\n    for kind in $argv\n        switch $kind\n",
        out);
  for (uint32_t k = 0; k < N_KINDS; k++) {
    fprintf(out, "            case %s\n                printf '%%s\\n' ", kinds[k].name);
    kinds[k].put(out, " ");
    fputs("\n", out);
  }
  fputs("            case RUN\n"
        "                echo last\n"
        "                snsim show 2>/dev/null | awk 'NR > 1 { print $1 }'\n"
        "            case SWEEP\n"
        "                echo sweep:last\n"
        "                snsim show sweeps 2>/dev/null | awk 'NR > 1 { print \"sweep:\" $1 }'\n"
        "            case 'FILE.*'\n"
        "                __snsim_files (string replace FILE '' $kind)\n"
        "            case '*'\n"
        "                string match -rv '[A-Z]' -- $kind\n"
        "        end\n    end\nend\n"
        "\n# The value that is being typed, without the option before it.\n"
        "function __snsim_typed\n    string replace -r '^--[a-z-]+=' '' -- (commandline -ct)\nend\n"
        "\nfunction __snsim_files --description 'files that end so, and folders'\n"
        "    set -l begin (__snsim_typed | string replace -r '.*,' '')\n"
        "    for file in $begin*$argv[1] $begin*/\n"
        "        echo $file\n"
        "    end\n"
        "end\n"
        "\nfunction __snsim_list --description 'the same behind the commas typed so far'\n"
        "    set -l head (__snsim_typed | string match -r '.*,')\n"
        "    for word in (__snsim_offer $argv)\n"
        "        echo \"$head$word\"\n"
        "    end\n"
        "end\n"
        "\ncomplete -c snsim -f\n",
        out);
}

/* The words of `kinds`, parted by '|', as one word for fish's -a: kinds are looked up, others stand as they are. */
static void put_fish_kinds(FILE *out, const char *kinds_text, size_t length) {
  char words[160];
  snprintf(words, sizeof words, "%.*s", (int)length, kinds_text);
  char *list = strstr(words, ",..");
  if (list) *list = '\0';
  for (char *c = words; *c; c++) *c = *c == '|' ? ' ' : *c;
  bool literal = !list && strpbrk(words, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") == NULL;
  fprintf(out, literal ? " -a '%s'" : list ? " -a '(__snsim_list %s)'" : " -a '(__snsim_offer %s)'", words);
}

static void put_fish_takers(FILE *out, const sn_option *option) {
  uint32_t count;
  const sn_command *commands = sn_command_table(&count);
  fputs("complete -c snsim -n '__snsim_is", out);
  if (sn_option_belongs(option, &commands[0])) fputs(" none", out);
  for (uint32_t c = 0; c < count; c++)
    if (sn_option_belongs(option, &commands[c])) fprintf(out, " %s", commands[c].name);
  fputs("'", out);
}

static void put_fish_option(FILE *out, const sn_option *o) {
  put_fish_takers(out, o);
  if (o->letter) fprintf(out, " -s %c", o->letter);
  fprintf(out, " -l %s", o->name);
  if (o->argument) {
    const char *file = strstr(o->argument, "FILE");
    fputs(file && file[4] != '.' ? " -r -F" : " -x", out);
    put_fish_kinds(out, o->argument, strlen(o->argument));
  }
  fputs(" -d '", out);
  put_clause(out, o->help, "\\");
  fputs("'\n", out);
}

static void put_fish_command(FILE *out, const sn_command *command) {
  fprintf(out, "complete -c snsim -n '__snsim_is none' -a %s -d '", command->name);
  put_clause(out, command->summary, "\\");
  fputs("'\n", out);
  if (!command->operand) return;
  const char *begin = command->operand + (command->operand[0] == '[');
  fprintf(out, "complete -c snsim -n '__snsim_is %s'", command->name);
  put_fish_kinds(out, begin, strcspn(begin, " ]"));
  fputs("\n", out);
}

static void write_fish(FILE *out) {
  uint32_t n_commands, n_options;
  const sn_command *commands = sn_command_table(&n_commands);
  const sn_option *options = sn_option_table(&n_options);
  put_fish_head(out);
  for (uint32_t c = 0; c < n_commands; c++) put_fish_command(out, &commands[c]);
  for (uint32_t i = 0; i < n_options; i++) put_fish_option(out, &options[i]);
}

/* ---- the command ---- */

static const struct shell {
  const char *name;
  void (*write)(FILE *out);
} shells[] = {{"bash", write_bash}, {"zsh", write_zsh}, {"fish", write_fish}};

enum { N_SHELLS = sizeof shells / sizeof shells[0] };

static const struct shell *find_shell(const char *name, sn_err *err) {
  const char *names[N_SHELLS];
  char suggestion[80];
  for (uint32_t i = 0; i < N_SHELLS; i++) {
    if (strcmp(shells[i].name, name) == 0) return &shells[i];
    names[i] = shells[i].name;
  }
  sn_text_suggest(name, names, N_SHELLS, suggestion, sizeof suggestion);
  sn_fail(err, SN_BAD_USAGE, "completions: unknown shell \"%.80s\"%s; there are bash, zsh and fish", name, suggestion);
  return NULL;
}

sn_status sn_cli_completions(const sn_args *args, sn_err *err) {
  sn_out out;
  const struct shell *shell = find_shell(args->operand, err);
  if (!shell || sn_out_open(&out, args->output, SN_COLOR_NEVER, err) != SN_OK) return err->code;
  shell->write(out.stream);
  return sn_out_close(&out, err);
}
