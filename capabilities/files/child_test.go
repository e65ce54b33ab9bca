package files

import (
	"fmt"
	"os"
)

// childRole, in the environment, makes this test program one of its helpers.
const childRole = "LOCALPC_FILES_TEST_ROLE"

func runChild(role string) int {
	fmt.Fprintln(os.Stderr, "no role", role)
	return 2
}
