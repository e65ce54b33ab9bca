//go:build !race

package tunneltest_test

// moved is how much goes each way where memory is measured.
const moved = 1 << 30
