/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* An empty program: measures the start of a program. */
int main(void)
{
	return 0;
}
