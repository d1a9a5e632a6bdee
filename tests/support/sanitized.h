/* Whether this is a build with a sanitizer: programs are several times slower there, and their heap is another. */
#ifndef SN_TESTS_SANITIZED_H
#define SN_TESTS_SANITIZED_H

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
enum { SANITIZED = 1 };
#elif defined(__has_feature)
enum { SANITIZED = __has_feature(address_sanitizer) || __has_feature(thread_sanitizer) };
#else
enum { SANITIZED = 0 };
#endif

#endif
