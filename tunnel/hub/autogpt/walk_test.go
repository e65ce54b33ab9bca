//go:build unix

package autogpt_test

import (
	"fmt"
	"strings"
	"testing"

	"localpc/tunnel/wire"
	msg "localpc/tunnel/wire/autogpt"
)

// pages serves DIRECTORY_LIST_REQUEST from a table: the entries of each
// folder, by its reference; "" is the roots.
func (w *raw) pages(list map[string][]string, endless bool) {
	for {
		_, data, err := w.ws.ReadMessage()
		if err != nil {
			return
		}
		m, err := msg.Decode(data, wire.ToMachine)
		if err != nil {
			return
		}
		d, ok := m.Payload.(*msg.DirectoryList)
		if !ok {
			continue
		}
		ref := ""
		if d.DirectoryRef != nil {
			ref = *d.DirectoryRef
		}
		entries := []map[string]any{}
		for _, path := range list[ref] {
			entries = append(entries, map[string]any{"directory_ref": path, "name": path[strings.LastIndexAny(path, `/\`)+1:] + " ", "path": path})
		}
		reply := map[string]any{"browse_id": "b", "current": nil, "parent_ref": nil, "entries": entries, "next_cursor": nil, "truncated": false, "expires_at": 1}
		if endless && ref != "" {
			reply["next_cursor"] = "next"
		}
		w.send("DIRECTORY_LIST_RESPONSE", m.ID, reply)
	}
}

func TestWalk(t *testing.T) {
	t.Parallel()
	r := newRig(t)
	token := r.token("s1")
	walk := func(list map[string][]string, endless bool, path string) (string, error) {
		w, _ := r.join("", token, nil)
		done := make(chan struct{})
		go func() { defer close(done); w.pages(list, endless) }()
		defer func() { w.ws.Close(); <-done }()
		_, ref, err := r.Walk(t.Context(), user, machine, path)
		return ref, err
	}
	unix := map[string][]string{"": {"/home/ann", "/media/ann/disk", "/home/ann/nested"}, "/home/ann": {"/home/ann/task", "/home/ann/workshop"},
		"/home/ann/workshop": {"/home/ann/workshop/a"}, "/home/ann/nested": {"/home/ann/nested/b"}}
	win := map[string][]string{"": {`C:\Users\ann`, `D:\`}, `D:\`: {`D:\Data`}, `D:\Data`: {`D:\Data\Shop`}}
	for _, c := range []struct {
		list map[string][]string
		path string
		ref  string // "": not found
	}{
		{unix, "/home/ann", "/home/ann"},
		{unix, "/home/ann/", "/home/ann"},
		{unix, "/home/ann/workshop/a", "/home/ann/workshop/a"},
		{unix, "/home/ann/nested/b", "/home/ann/nested/b"}, // by the deepest root
		{unix, "/home/ann/works", ""},
		{unix, "/home/anna", ""},
		{unix, "/home/ann/Work", ""},
		{unix, "/", ""},
		{win, `d:/data/SHOP`, `D:\Data\Shop`},
		{win, `D:\`, `D:\`},
		{win, `E:\x`, ""},
		// One that offers a folder again as its own entry leads nowhere.
		{map[string][]string{"": {"/a"}, "/a": {"/a", "/"}}, "/a/b", ""},
	} {
		ref, err := walk(c.list, false, c.path)
		if c.ref == "" && wire.CodeOf(err) != wire.CodePathNotFound || c.ref != "" && (err != nil || ref != c.ref) {
			t.Errorf("%s: %q %v", c.path, ref, err)
		}
	}
	if _, err := walk(unix, true, "/home/ann/nothing"); wire.CodeOf(err) != wire.CodePathNotFound {
		t.Errorf("pages without an end: %v", err)
	}
	deep := map[string][]string{"": {"/d"}}
	for i, at := 0, "/d"; i < 40; i++ {
		next := fmt.Sprintf("%s/%d", at, i)
		deep[at], at = []string{next}, next
	}
	if ref, err := walk(deep, false, "/d/0/1/2/3/4/5"); err != nil || ref != "/d/0/1/2/3/4/5" {
		t.Errorf("deep: %q %v", ref, err)
	}
}
