/* A module that needs a library which is not there. */
int other_function(void);
__attribute__((visibility("default"))) int sn_needs_more(void);

int sn_needs_more(void) {
  return other_function();
}
