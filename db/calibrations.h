/* Calibrations in the store (sim/device/calibration.h), one for each device name, back end, hardware and set of
 * libraries. */
#ifndef SN_DB_CALIBRATIONS_H
#define SN_DB_CALIBRATIONS_H

#include "base/err.h"
#include "db/store.h"
#include "sim/device/calibration.h"

/* Writes a calibration in place of the one of the same name, back end, hardware and libraries. All or nothing. */
sn_status sn_store_put_calibration(sn_store *store, const sn_calibration *calibration, sn_err *err);

/* The newest calibration of the name; with `hardware` and `libraries` (both or NULL) the one for exactly these. Fitted
 * anew. NULL without an error where there is none. */
sn_calibration *sn_store_calibration(sn_store *store, const char *name, const char *hardware, const char *libraries,
                                     sn_err *err);

/* Calls `visit` for each stored calibration, newest first, which may look at it until it returns. Ends with the first
 * error. */
sn_status sn_store_each_calibration(sn_store *store,
                                    sn_status (*visit)(void *user, const sn_calibration *calibration, sn_err *err),
                                    void *user, sn_err *err);

#endif
