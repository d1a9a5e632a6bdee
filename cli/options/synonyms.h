/* What people type who come from elsewhere, and what it is called here: a table that is asked before the spelling is
 * (base/text.h). Case, '-' and '_' do not matter. Every answer is itself accepted when typed:
 * tests/hints/hints.py types them all. */
#ifndef SN_CLI_OPTIONS_SYNONYMS_H
#define SN_CLI_OPTIONS_SYNONYMS_H

#include "cli/options/options.h"

/* What option `name`, without its dashes, is called by `command`, as a piece of a sentence to stand behind the name,
 * " (did you mean --net?)"; "" where the table has nothing. Returns out. */
char *sn_synonym_option(const char *name, const sn_command *command, char *out, size_t room);

/* The same for the name of a command, which may be a file, a network or a GPU in the place of one. */
char *sn_synonym_command(const char *name, char *out, size_t room);

#endif
