//go:build race

package tunneltest_test

// moved is less where each access to memory is watched.
const moved = 32 << 20
