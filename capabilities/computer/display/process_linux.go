package display

import (
	"bytes"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// process is what the system says of one.
type process struct {
	name    string
	started int64
}

func look(pid int) (p process) {
	if pid <= 0 {
		return p
	}
	dir := "/proc/" + strconv.Itoa(pid)
	if exe, err := os.Readlink(dir + "/exe"); err == nil {
		p.name = filepath.Base(strings.TrimSuffix(exe, " (deleted)"))
	} else if comm, err := os.ReadFile(dir + "/comm"); err == nil {
		p.name = strings.TrimSpace(string(comm))
	}
	stat, err := os.ReadFile(dir + "/stat")
	if err != nil {
		return p
	}
	// The name in it may have anything; its end is the last bracket.
	if fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:])); len(fields) > 19 {
		p.started, _ = strconv.ParseInt(fields[19], 10, 64)
	}
	return p
}
