/* A shared object that is no CUDA module. */
__attribute__((visibility("default"))) int other_function(void);

int other_function(void) {
  return 1;
}
