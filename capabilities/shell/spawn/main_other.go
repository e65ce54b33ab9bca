//go:build !linux

package spawn

import "os"

// Main says that there is nothing to start here: on other systems localpc
// starts commands itself, in a group that ends with it.
func Main([]string) int {
	os.Stderr.WriteString("localpc-spawn: this system needs no process starter\n")
	return 2
}
