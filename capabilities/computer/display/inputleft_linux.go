package display

// #include "input_linux.h"
import "C"

import (
	"bytes"
	"os"
	"strconv"
)

// The keyboard's changes outlive the process that made them. While there are
// any, a property of the root window says which, so that the next process takes
// them back where this one can't.

// changes is what is not as the person left it. Its holder has the token.
type changes struct {
	locked C.uint // modifiers that were locked
	group  int    // one more than the locked group, 0: it is as it was
}

// changesMax is how many numbers the property has at most.
const changesMax = 4 + 2*256

// note writes down what is changed, before it is.
func (x *x11Input) note() {
	var values []C.long
	if len(x.spare.bound) > 0 || x.changed != (changes{}) {
		pid := os.Getpid()
		values = []C.long{C.long(pid), C.long(uint32(look(pid).started)), C.long(x.changed.locked), C.long(x.changed.group)}
		for sym, code := range x.spare.bound {
			values = append(values, C.long(code), C.long(sym))
		}
	}
	_ = x.act.do(func(d *C.Display) { // gone: there is no keyboard any more
		if len(values) == 0 {
			C.lx_note(d, nil, 0)
		} else {
			C.lx_note(d, &values[0], C.int(len(values)))
		}
	})
}

// takeBack undoes what a process changed that has ended since.
func (x *x11Input) takeBack() error {
	var values [changesMax]C.long
	n := 0
	err := x.act.do(func(d *C.Display) { n = int(C.lx_noted(d, &values[0], changesMax)) })
	if err != nil || n < 4 || runs(int(values[0]), uint32(values[1])) {
		return err
	}
	none := map[byte]keysym{}
	err = x.act.do(func(d *C.Display) {
		for i := 4; i+1 < n; i += 2 {
			code, sym := values[i], values[i+1]
			if code >= 8 && code < 256 && C.long(C.lx_bound(d, C.int(code))) == sym {
				none[byte(code)] = 0
			}
		}
		if locked := C.uint(values[2]) & 0xff; locked != 0 {
			C.lx_lock(d, locked, locked)
		}
		if group := values[3]; group >= 1 && group <= 4 {
			C.lx_group(d, C.int(group-1))
		}
	})
	if err == nil {
		err = x.remap(none)
	}
	if err == nil {
		x.note()
	}
	return err
}

// runs tells whether the process that began then has not ended.
func runs(pid int, started uint32) bool {
	stat, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		return false
	}
	_, after, _ := bytes.Cut(stat[bytes.LastIndexByte(stat, ')'):], []byte(" "))
	return len(after) > 0 && after[0] != 'Z' && after[0] != 'X' && uint32(look(pid).started) == started
}
