/* Build id: the version and a digest of every header, generated when building (cmake/build_id.cmake). The program and
 * the modules that it loads (exec/machine/module.h) share structures, so both must have been built from the same
 * headers. */
#ifndef SN_BASE_BUILD_ID_H
#define SN_BASE_BUILD_ID_H

extern const char sn_build_id[];

#endif
