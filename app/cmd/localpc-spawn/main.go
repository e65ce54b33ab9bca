// Command localpc-spawn starts one command for localpc, keeps its whole
// process tree together, and ends it when localpc says so or goes away. In a
// container it is process 1.
package main

import (
	"os"
	"runtime"

	"localpc/capabilities/shell/spawn"
)

// The main goroutine keeps the main thread: see spawn.Main.
func init() { runtime.LockOSThread() }

func main() { os.Exit(spawn.Main(os.Args[1:])) }
