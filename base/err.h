/* Status codes and the error a caller keeps on its stack.
 *
 * Makers return an object or NULL, doers return a sn_status; both take `sn_err *` last and never NULL. The text says
 * what is wrong, where, and what to do about it; only cli/ prints it. The first error wins: code that unwinds must not
 * hide the cause, so sn_fail() on an error that is already set keeps what is there.
 *
 *   sn_err err = SN_ERR_INIT;
 *   sn_net *net = sn_net_load("alexnet", 200, 0, &err);
 *   if (!net) fprintf(stderr, "%s\n", err.text);
 */
#ifndef SN_BASE_ERR_H
#define SN_BASE_ERR_H

/* code, exit code of the program, name */
#define SN_STATUS_LIST(X)                                                                                              \
  X(SN_OK, 0, "ok")                                                                                                    \
  X(SN_NO_FIT, 1, "does not fit")                                                                                      \
  X(SN_BAD_USAGE, 2, "bad usage")                                                                                      \
  X(SN_BAD_INPUT, 3, "bad input file")                                                                                 \
  X(SN_BAD_FILE, 3, "file cannot be read or written")                                                                  \
  X(SN_BAD_DEVICE, 4, "device or back end failed")                                                                     \
  X(SN_NO_MEMORY, 4, "out of host memory")                                                                             \
  X(SN_BUG, 5, "internal error")

typedef enum sn_status {
#define SN_STATUS_ENUM(code, exit_code, name) code,
  SN_STATUS_LIST(SN_STATUS_ENUM)
#undef SN_STATUS_ENUM
} sn_status;

typedef struct sn_err {
  sn_status code;
  char text[600];
} sn_err;

#define SN_ERR_INIT                                                                                                    \
  { SN_OK, "" }

/* Records an error (printf style) unless one is recorded already; returns the recorded code. */
sn_status sn_fail(sn_err *err, sn_status code, const char *format, ...) __attribute__((format(printf, 3, 4)));

/* Shorthand for the one error every maker can meet. */
sn_status sn_fail_memory(sn_err *err);

/* Puts "context: " in front of a recorded error. */
void sn_err_prefix(sn_err *err, const char *format, ...) __attribute__((format(printf, 2, 3)));

const char *sn_status_name(sn_status code);
int sn_status_exit_code(sn_status code);

#endif
