/* DTR's logs: a training step as DTR's authors recorded it in PyTorch, for sim/dtr/dtr.h to play. A JSON object a
 * line; what stands before {"ANNOTATION":"START","INSTRUCTION":"ANNOTATE"} is skipped.
 *
 *   sn_dtr_program *p = sn_dtr_log_load("resnet32.log", &err);
 *   sn_dtr_program_free(p);
 *
 *   CONSTANT NAME                 then MEMORY NAME MEMORY: a pinned storage, which costs nothing
 *   CALL NAME ARGS RESULT TIME    then for each result MEMORY NAME MEMORY and ALIAS NAME ALIAS: an operation; ALIAS
 *                                 from 0 on: that argument's storage, -1: one of its own
 *   MUTATE NAME ARGS MUTATE TIME  an operation that makes new storages, as large as those of the arguments numbered;
 *                                 their names mean these from now on, and the old tensors lose a reference
 *   COPY DST SRC                  DST is a new name for SRC's tensor: one reference more
 *   COPY_FROM DST SRC             the same where DST is there, whose tensor loses one first
 *   RELEASE NAME                  one reference less; unknown names are passed over
 *   ANNOTATE ANNOTATION           nothing
 *
 * At the end what is still referenced is made again and pinned, in the order in which names appeared. Times are ns.
 *
 * Errors are SN_BAD_INPUT (SN_BAD_FILE where the file cannot be read) and begin with "file:line: ". Lines are at most
 * SN__DTR_MOST_LINE bytes, names SN__DTR_MOST_NAME; a log needs memory for its operations and names, not for its text:
 * some 60 bytes a line.
 */
#ifndef SN_SIM_DTR_DTR_LOG_H
#define SN_SIM_DTR_DTR_LOG_H

#include "base/err.h"
#include "sim/dtr/dtr_program.h"

#include <stddef.h>

sn_dtr_program *sn_dtr_log_load(const char *path, sn_err *err);
/* The same of text that was read already; `name` stands for the file in messages. */
sn_dtr_program *sn_dtr_log_parse(const char *name, const char *text, size_t bytes, sn_err *err);

#endif
