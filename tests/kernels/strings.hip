// Constants that the linker merges: strings of two character sizes, tables of 16 and 32 bytes.
extern "C" __attribute__((global)) void strings(int *out, const char **kept, double *values, int n) {
  const char *hello = "hello world", *bye = "bye";
  const wchar_t *wide = L"wide";
  const double four[4] = {1.5, 2.5, 3.5, 4.5};
  const int three[3] = {7, 8, 9};
  out[0] = hello[n] + bye[n] + wide[n] + three[n & 1];
  values[0] = four[n];
  kept[0] = hello;
  kept[1] = bye;
}
