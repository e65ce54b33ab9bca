package hub

import "testing"

func TestRealName(t *testing.T) {
	for _, c := range []struct{ root, name, want string }{
		{"/home/ann/task", "", "/home/ann/task"},
		{"/home/ann/task", "~", "/home/ann/task"},
		{"/home/ann/task", "/home/user", "/home/ann/task"},
		{"/home/ann/task", "/home/user/", "/home/ann/task"},
		{"/home/ann/task", "/home/user/a/b", "/home/ann/task/a/b"},
		{"/home/ann/task", "~/a", "/home/ann/task/a"},
		{"/home/ann/task", "a b/c", "/home/ann/task/a b/c"},
		{"/home/ann/task", "../x", "/home/ann/task/../x"}, // the computer says that it is outside
		{"/home/ann/task", "/home/ann/task/a", "/home/ann/task/a"},
		{"/home/ann/task", "/home/ann/workshop", "/home/ann/workshop"},
		{"/home/ann/task", "/home/username", "/home/username"},
		{"/home/user/task", "/home/user/task/a", "/home/user/task/a"},
		{"/home/user/task", "/home/user/a", "/home/user/task/a"},
		{"/", "a", "/a"},
		{`C:\Users\ann`, "/home/user/a/b", `C:\Users\ann\a\b`},
		{`C:\Users\ann`, `D:\x`, `D:\x`},
		{`C:\`, "a", `C:\a`},
	} {
		if got := realName(c.root, c.name); got != c.want {
			t.Errorf("%q in %q is %q, not %q", c.name, c.root, got, c.want)
		}
	}
	for _, c := range []struct{ dir, path, want string }{
		{"/a", "/a/b/c", "b/c"}, {"/", "/b", "b"}, {"/a", "/ab", ""}, {`C:\a`, `C:\a\b\c`, "b/c"}, {"/a", `/a/b\c`, `b\c`},
	} {
		if got := relative(c.dir, c.path); got != c.want {
			t.Errorf("%q below %q is %q, not %q", c.path, c.dir, got, c.want)
		}
	}
}
