package files

import (
	"context"
	"fmt"
	"io/fs"
	"os"
	"sync"
	"time"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// watchOp is FILE_WATCH: FILE_WATCHING, FILE_CHANGES until it is cancelled, ACK
// when the watched folder has gone. Folders behind links are not watched.
type watchOp struct {
	request
	p     *wire.FileWatch
	asked asked
	place place
	told  int // changes
}

func (o *watchOp) look(context.Context) (capabilities.Description, error) {
	var err error
	if o.asked, o.place, err = o.j.folderAt(o.p.Path, "to watch"); err != nil {
		return capabilities.Description{}, err
	}
	d := looksOnly("watch", "Watch "+named(o.place), "%s wants to be told what changes in "+named(o.place), exact(o.asked, o.place), o.place)
	text := "watches 1 folder"
	if o.p.Recursive {
		text += " and all below it"
	}
	d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: text + ", until it is ended", Count: 1}}
	d.Payload = payload{Type: wire.TypeFileWatch, Path: o.p.Path, Options: options(map[string]bool{"recursive": o.p.Recursive, "entries": o.p.Entries})}
	d.Fingerprint = o.place.key() + "\x00" + o.place.node.which()
	return d, nil
}

// folderAt finds the folder that a request looks into.
func (j *jail) folderAt(name, why string) (asked, place, error) {
	a, p, err := j.at(name, true)
	switch {
	case err != nil:
		return a, p, err
	case !p.exists():
		return a, p, notFound(name)
	case !p.isDir():
		return a, p, wire.Errorf(wire.CodePathKind, "%s is not a folder, so there is nothing %s.", shown(name), why)
	}
	return a, p, nil
}

// change is one that a watcher saw. rel is the name on the disk, below the
// watched folder.
type change struct{ op, rel string }

// departures are names that are deleted by moving away what is there, so that it
// can be put back: who watches the folder is told of a delete. The zero value
// is ready; safe for concurrent use.
type departures struct {
	mu  sync.Mutex
	all map[string]time.Time // guarded by mu; by path on the disk
}

// departureFor is how long a delete and its event may lie apart.
const departureFor = 10 * time.Second

func (d *departures) note(abs string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.all == nil {
		d.all = map[string]time.Time{}
	}
	now := time.Now()
	for name, when := range d.all {
		if now.Sub(when) > departureFor {
			delete(d.all, name)
		}
	}
	d.all[abs] = now
}

func (d *departures) has(abs string) bool {
	d.mu.Lock()
	defer d.mu.Unlock()
	when, noted := d.all[abs]
	return noted && time.Since(when) <= departureFor
}

// tellEvery is the least time between two replies: what changes in between is
// told together.
const tellEvery = 20 * time.Millisecond

func (o *watchOp) run(ctx context.Context, out capabilities.Output) (capabilities.Result, error) {
	w, err := newWatcher(o.place, o.p.Recursive, &o.e.deleted)
	if err != nil {
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	defer w.close()
	if err := out.Send(ctx, wire.TypeFileWatching, &wire.Empty{}); err != nil {
		return capabilities.Result{}, err
	}
	res := capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}}
	for {
		changes, overflow, err := w.next(ctx)
		there := o.still()
		if len(changes) > 0 || overflow {
			// What a folder saw before it went is told, what one saw that is
			// elsewhere now is not.
			if there == nil || there == errGone && err == errGone {
				if terr := o.tell(ctx, out, changes, overflow); terr != nil {
					return res, terr
				}
			}
		}
		switch {
		case there != nil && there != errGone:
			return res, there
		case there == errGone || err == errGone:
			res.Outcome = "the folder has gone; " + o.words()
			return res, nil
		case ctx.Err() != nil && wire.CodeOf(context.Cause(ctx)) == wire.CodeCancelled:
			res.Outcome = "ended by its program; " + o.words()
			return res, nil
		case err != nil:
			return res, fileError(err, o.p.Path)
		}
		select {
		case <-ctx.Done(): // next says why
		case <-time.After(tellEvery):
		}
	}
}

func (o *watchOp) words() string { return count(o.told, "change", "changes", false) + " told" }

// errGone: the watched folder is not at its name any more.
var errGone = fmt.Errorf("the watched folder: %w", fs.ErrNotExist)

// still tells whether the session's folder, and the watched one in it, are the
// ones that were allowed. Nothing is told of one that was moved elsewhere.
func (o *watchOp) still() error {
	fi, err := os.Stat(o.j.session.Folder)
	if err != nil {
		return folderGone(err, o.j.session.Folder)
	}
	if id, ok := capabilities.FileIDOf(fi); !ok || !id.Same(o.j.session.FolderID) {
		return folderGone(nil, o.j.session.Folder)
	}
	if n, err := o.place.base.lstat(o.place.rel); err != nil || !n.id.Same(o.place.node.id) {
		return errGone
	}
	return nil
}

// tell sends changes, in as many replies as they need.
func (o *watchOp) tell(ctx context.Context, out capabilities.Output, changes []change, overflow bool) error {
	var batch []wire.FileChange
	cost := 0
	flush := func(overflow bool) error {
		if len(batch) == 0 && !overflow {
			return nil
		}
		err := out.Send(ctx, wire.TypeFileChanges, &wire.FileChanges{Changes: batch, Overflow: overflow})
		o.told += len(batch)
		batch, cost = nil, 0
		return err
	}
	root := o.asked.reply(o.place)
	for _, c := range changes {
		told := wire.FileChange{Op: c.op, Name: escaped(c.rel)}
		if len(told.Name) > 2*wire.MaxPath {
			continue // the wire takes no such name
		}
		if o.p.Entries && c.op != "remove" && c.op != "rename" {
			told.Entry = o.entryNow(c.rel, join(root, told.Name))
		}
		n := 64 + 6*len(told.Name)
		if e := told.Entry; e != nil {
			n += entryCost(e)
		}
		if len(batch) == wire.MaxEvents || cost+n > maxListFrame {
			if err := flush(false); err != nil {
				return err
			}
		}
		batch, cost = append(batch, told), cost+n
	}
	return flush(overflow)
}

// entryNow is what is at rel at this moment; nil for nothing.
func (o *watchOp) entryNow(rel, name string) *wire.Entry {
	p := o.place.child(rel)
	var err error
	if p.node, err = p.base.lstat(p.rel); err != nil || len(name) > 2*wire.MaxPath {
		return nil
	}
	e := o.whole(o.asked, p, name)
	return &e
}
