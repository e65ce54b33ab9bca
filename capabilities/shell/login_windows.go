package shell

import (
	"context"
	"os"
	"sync"
)

// login is the PATH of the person's log-in, which every program has here.
type login struct{ path string }

func askLogin(_ context.Context, _ *sync.WaitGroup, known string) *login {
	if known == "" {
		known = os.Getenv("PATH")
	}
	return &login{known}
}

func (l *login) get(context.Context) string { return l.path }
