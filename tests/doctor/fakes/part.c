/*
 * A part that another test library is linked to. The tests leave it out.
 */
int yoke_test_part(void);
int yoke_test_part(void) { return 7; }
