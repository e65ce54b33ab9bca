package capabilities

import (
	"context"
	"os"
)

// Keep holds what requests replace and delete, so that a person can have it put
// back. An executor whose Options have none keeps nothing, and says so. Safe
// for concurrent use.
type Keep interface {
	// Would tells whether so many bytes that a request is to replace or delete
	// in the session's folder would be kept. Describe asks, and says "can be
	// undone" or "cannot be undone".
	Would(s *Session, bytes int64) bool
	// Begin opens the notes of one request that changes files.
	Begin(s *Session, request string) Notes

	// WouldSnapshot tells whether the folder could be held as it is before a
	// command changes it; but names what would be left out, "" for nothing. It
	// is bounded by ctx, and quick.
	WouldSnapshot(ctx context.Context, s *Session) (ok bool, but string)
	// Snapshot holds the folder as it is. Its error says that this could not be
	// done, and WouldSnapshot says so too for a while.
	Snapshot(ctx context.Context, s *Session, request string) (Snapshot, error)
}

// Notes are what one request changes in its session's folder, in order. Each
// change is noted before it is made; when the program is killed in between, the
// next start finds out which it was. rel is slash-separated and free of links;
// parent is the open folder that its last component is in. For one goroutine.
type Notes interface {
	// Makes notes that something is made where nothing is. It never fails:
	// nothing is lost by what can't be noted.
	Makes(parent *os.Root, rel string) Change
	// Replaces keeps what is about to be replaced by a rename, a file or an
	// empty folder.
	Replaces(ctx context.Context, parent *os.Root, rel string) (Change, error)
	// Rewrites keeps a copy of a file that is about to be changed in place.
	Rewrites(ctx context.Context, parent *os.Root, rel string) (Change, error)
	// Takes keeps what is about to be deleted, with all below it. With gone it
	// has been moved away and nothing is left to delete; otherwise a copy is
	// kept.
	Takes(ctx context.Context, parent *os.Root, rel string) (c Change, gone bool, err error)
	// Leaves keeps a copy of what is about to be moved out of the folder.
	Leaves(ctx context.Context, parent *os.Root, rel string) (Change, error)
	// Moves notes a rename within the folder. What was noted to be replaced at
	// to makes room for it.
	Moves(from, to string) Change
	// End closes the notes: from now on the request can be undone.
	End()
}

// Change is one of Notes. Done is called when it was made, also in part; Not
// when nothing was.
type Change interface {
	Done()
	Not()
}

// Snapshot is a folder as it was before a command.
type Snapshot interface {
	// End notes what has changed since. It returns sentences for the log:
	// "changed 3 files; can be undone".
	End(ctx context.Context) []string
}
