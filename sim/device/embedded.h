/* Files that are part of the program: the device descriptions of sim/device/profiles, so that one binary needs nothing
 * beside it. The build generates the definitions (cmake/embed.cmake); they are rebuilt when a file changes.
 *
 *   for (size_t i = 0; i < sn_embedded_device_count; i++)
 *     sn_json_parse(sn_embedded_devices[i].name, sn_embedded_devices[i].text, sn_embedded_devices[i].bytes, &err);
 */
#ifndef SN_SIM_DEVICE_EMBEDDED_H
#define SN_SIM_DEVICE_EMBEDDED_H

#include <stddef.h>

typedef struct sn_embedded_file {
  const char *name; /* the file's name without ".json": "k40c" */
  const char *text; /* the file as it is, and a 0 behind it */
  size_t bytes;     /* without that 0 */
} sn_embedded_file;

extern const sn_embedded_file sn_embedded_devices[]; /* sorted by name (strcmp) */
extern const size_t sn_embedded_device_count;

#endif
