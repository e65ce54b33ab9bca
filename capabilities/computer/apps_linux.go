package computer

import (
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
)

// lookAt is a process of this person, or of another whom this one may look at.
func lookAt(pid int) (process, bool) {
	dir := filepath.Join("/proc", strconv.Itoa(pid))
	name, err := os.ReadFile(filepath.Join(dir, "comm"))
	if err != nil {
		return process{}, false
	}
	path, _ := os.Readlink(filepath.Join(dir, "exe"))
	return process{pid: pid, name: strings.TrimSpace(string(name)), path: strings.TrimSuffix(path, " (deleted)")}, true
}

// processes are the person's own; those of the system's core have no file.
func processes() []process {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil
	}
	var out []process
	for _, e := range entries {
		pid, err := strconv.Atoi(e.Name())
		if err != nil {
			continue
		}
		if fi, err := e.Info(); err != nil {
			continue
		} else if st, ok := fi.Sys().(*syscall.Stat_t); !ok || int(st.Uid) != os.Getuid() {
			continue
		}
		if p, ok := lookAt(pid); ok && p.path != "" {
			out = append(out, p)
		}
	}
	return out
}
