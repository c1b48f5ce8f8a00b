// SPDX-License-Identifier: MIT OR Apache-2.0
/*
 * Multiplies two square matrices by the textbook loop: one of them is read by columns.
 *
 *     matmul SIDE ROWS
 *
 * Computes ROWS rows of the product.
 */
#include "util.h"

int main(int argc, char **argv)
{
	size_t side, rows;
	float *one, *other, *product;

	if (argc != 3)
		usage("matmul SIDE ROWS");
	side = number(argv[1]);
	rows = number(argv[2]);
	if (rows > side) {
		fprintf(stderr, "matmul: no more rows than the side\n");
		return 2;
	}
	one = (float *)anonymous(side * side * sizeof(*one));
	other = (float *)anonymous(side * side * sizeof(*other));
	product = (float *)anonymous(side * side * sizeof(*product));
	for (size_t i = 0; i < side * side; i++) {
		one[i] = i % 7;
		other[i] = i % 5;
	}
	for (size_t row = 0; row < rows; row++)
		for (size_t column = 0; column < side; column++) {
			float sum = 0;

			for (size_t i = 0; i < side; i++)
				sum += one[row * side + i] * other[i * side + column];
			product[row * side + column] = sum;
		}
	printf("%g\n", product[(rows - 1) * side]);
	return 0;
}
