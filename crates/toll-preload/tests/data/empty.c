/* SPDX-License-Identifier: MIT OR Apache-2.0 */
/* Nothing: what remains is what the start of a program costs. */
int main(void)
{
	return 0;
}
