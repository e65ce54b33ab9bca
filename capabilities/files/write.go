package files

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// writeOp is FILE_WRITE: the upload takes the place of a file as a whole, or
// makes one, with the folders above it.
type writeOp struct {
	request
	p     *wire.FileWrite
	up    *capabilities.Upload
	asked asked
	place place
	own   bool
	kept  bool     // what it replaces
	names []string // start-up names it changes
	done  node     // what is there after put
}

func (o *writeOp) look(context.Context) (capabilities.Description, error) {
	if o.up == nil {
		return capabilities.Description{}, errors.New("files: a write without an upload")
	}
	var err error
	if o.asked, o.place, err = o.j.at(o.p.Path, true); err != nil {
		return capabilities.Description{}, err
	}
	p := o.place
	if o.p.NoParents && p.missing > 1 {
		return capabilities.Description{}, wire.Errorf(wire.CodePathNotFound, "The folder that %s is to be in is not there.", shown(o.p.Path))
	}
	if p.exists() && !p.regular() {
		return capabilities.Description{}, notRegular(o.p.Path, p.node)
	}
	if err := o.j.mayWrite(p); err != nil {
		return capabilities.Description{}, fileError(err, o.p.Path)
	}
	if name := o.j.startupName(p); name != "" {
		o.names = []string{name}
	}
	o.own = p.exists() && o.j.own(p, p.node)

	verb, effect, risk := "create", consent.Effect{Kind: consent.EffectCreate, Text: "makes 1 file, " + consent.Bytes(o.up.Size)}, consent.RiskLow
	if p.exists() {
		verb = "replace"
		o.kept = o.would(p, p.node.size)
		effect = consent.Effect{Kind: consent.EffectOverwrite, Text: "replaces 1 file of " + consent.Bytes(p.node.size) + undoable(o.kept), Own: o.own, Kept: o.kept}
		if !o.own {
			risk = consent.RiskNormal
		}
	}
	effect.Count, effect.Bytes = 1, o.up.Size
	effects := []consent.Effect{effect}
	if len(o.names) > 0 {
		effects, risk = append(effects, runsElsewhere(o.names)), consent.RiskHigh
	}
	d := changes("write", "Write "+named(p), fmt.Sprintf("%%s wants to %s %s (%s)", verb, named(p), consent.Bytes(o.up.Size)),
		exact(o.asked, p)+metadataWords(o.p.Metadata)+"\n\n"+head(o.up.Head, o.up.Size), p.key(), risk)
	d.Effects = effects
	d.Payload = payload{Type: wire.TypeFileWrite, Path: o.p.Path, Size: o.up.Size, SHA256: o.up.SHA256, Metadata: o.p.Metadata, Options: options(map[string]bool{"no_parents": o.p.NoParents})}
	d.Fingerprint = fmt.Sprintf("%s\x00own=%v startup=%q%s", p.print(), o.own, o.names, keptPrint(o.kept))
	if p.missing > 1 {
		d.Details = append(d.Details, "Makes "+count(p.missing-1, "folder", "folders", false)+" above it.")
	}
	return d, nil
}

// mayWrite asks the system, so that nobody is asked about what cannot be done.
func (j *jail) mayWrite(p place) error {
	there := p
	for there.missing > 0 {
		there = place{base: p.base, rel: there.dir(), missing: there.missing - 1}
	}
	dir, err := handle(p.base.root, there.dir())
	if err != nil {
		return err
	}
	defer dir.Close()
	return writable(dir, there.name())
}

func (o *writeOp) run(ctx context.Context, _ capabilities.Output) (capabilities.Result, error) {
	spool, err := os.Open(o.up.Path)
	if err != nil {
		return capabilities.Result{}, err
	}
	defer spool.Close()
	made, err := o.j.makeParents(o.place)
	if err == nil {
		err = o.put(ctx, spool)
	}
	if err != nil {
		o.j.unmake(made)
		if errors.Is(err, consent.ErrChanged) || ctx.Err() != nil {
			return capabilities.Result{}, err
		}
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	p := o.place
	p.missing, p.node = 0, o.done
	if o.own || !o.place.exists() {
		o.j.session.Made.Add(p.key(), p.node.id)
	} else {
		o.j.session.Made.Forget(p.key())
	}
	// The entry is of the name that was asked for, which may be a link.
	q := p
	if _, named, err := o.j.at(o.p.Path, false); err == nil && named.exists() {
		q = named
	}
	e := o.whole(o.asked, q, o.asked.reply(p))
	return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{Exists: true, Entry: &e},
		Outcome: consent.Bytes(o.up.Size) + " written", Received: o.up.Size, Notes: startupNotes(o.names)}, nil
}

// put writes the file: beside its place, and then into it by one rename; or in
// place where a rename would lose its other names or its owner.
func (o *writeOp) put(ctx context.Context, spool *os.File) error {
	parent, err := o.place.base.open(o.place.dir())
	if err != nil {
		return err
	}
	defer parent.Close()
	if o.place.exists() && o.place.node.links > 1 {
		err = o.inPlace(ctx, parent, spool)
	} else if err = o.beside(ctx, parent, spool); errors.Is(err, errKeepsNot) {
		err = o.inPlace(ctx, parent, spool)
	}
	if err == nil {
		o.done, err = lstatOf(parent, o.place.name())
	}
	return err
}

// errKeepsNot: a new file cannot take the place of the old one as it is.
var errKeepsNot = errors.New("owner cannot be kept, or the folder takes no new file")

func (o *writeOp) beside(ctx context.Context, parent *os.Root, spool *os.File) (err error) {
	temp, done, err := o.e.journal.temp(o.dirAbs(), o.place.exists())
	if err != nil {
		return err
	}
	defer done()
	mode := fs.FileMode(0o666) // less the umask
	if o.place.exists() {
		mode = 0o600
	}
	f, err := parent.OpenFile(temp, os.O_WRONLY|os.O_CREATE|os.O_EXCL|openFlags, mode)
	if err != nil {
		if o.place.exists() && errors.Is(err, fs.ErrPermission) {
			return errKeepsNot
		}
		return err
	}
	adopted := false
	defer func() {
		f.Close()
		switch {
		case err != nil && adopted:
			giveBack(parent, temp, spool, o.up.Path) // it may be asked about again
		case err != nil:
			_ = parent.Remove(temp)
		}
	}()
	if o.place.exists() {
		if err := o.keep(parent, f); err != nil {
			return err
		}
	} else if err := setMetadata(f, o.p.Metadata); err != nil {
		return err
	}
	if adopted, err = o.fill(ctx, parent, temp, f, spool); err != nil {
		return err
	}
	if err := f.Close(); err != nil {
		return err
	}
	if err := o.unchanged(parent); err != nil {
		return err
	}
	if !o.place.exists() {
		noted := o.j.makes(parent, o.place)
		err := renameNew(parent, temp, parent, o.place.name())
		settle(noted, err)
		if errors.Is(err, fs.ErrExist) {
			return consent.ErrChanged
		}
		return err
	}
	noted, err := o.j.hold(ctx, o.kept, parent, o.place, replaces)
	if err != nil {
		return err
	}
	err = rename(parent, temp, parent, o.place.name())
	settle(noted, err)
	return err
}

// adoptFrom is the size from which an upload is moved into its place instead of
// copied.
const adoptFrom = 1 << 20

// fill brings the upload to temp in parent, where f is open and empty, and to
// the disk.
func (o *writeOp) fill(ctx context.Context, parent *os.Root, temp string, f, spool *os.File) (adopted bool, err error) {
	if o.up.Size >= adoptFrom && sameDisk(f, spool) {
		if !o.untouched(spool) {
			if err := o.copy(ctx, io.Discard, spool); err != nil {
				return false, err
			}
		}
		if adopt(parent, temp, f, spool, o.up.Path) {
			return true, spool.Sync()
		}
	}
	if err := o.copy(ctx, f, spool); err != nil {
		return false, err
	}
	return false, f.Sync()
}

// untouched tells whether the spool is as it was when it was hashed: no write to
// a file leaves the time of its change as it was.
func (o *writeOp) untouched(spool *os.File) bool {
	n, err := lstatFile(spool)
	return err == nil && !o.up.Changed.IsZero() && n.ctime.Equal(o.up.Changed) && n.size == o.up.Size
}

func (o *writeOp) dirAbs() string {
	return place{base: o.place.base, rel: o.place.dir()}.abs()
}

// keep gives f the owner, the attributes and the mode of the file it replaces,
// in this order, and by the open file: a name may be swapped. Metadata is not
// the old file's; it comes before the mode, which may forbid it. What gives
// whoever runs a file more than they have was given to the old contents.
func (o *writeOp) keep(parent *os.Root, f *os.File) error {
	n := o.place.node
	if now, err := lstatFile(f); err != nil {
		return err
	} else if now.uid != n.uid || now.gid != n.gid {
		if err := f.Chown(n.uid, n.gid); err != nil {
			return errKeepsNot
		}
	}
	if old, err := parent.OpenFile(o.place.name(), os.O_RDONLY|openFlags, 0); err == nil {
		copyAttributes(old, f)
		old.Close()
	}
	if err := setMetadata(f, o.p.Metadata); err != nil {
		return err
	}
	return f.Chmod(plainMode(n.mode))
}

// plainMode is a mode as the system leaves it when a file is written to.
func plainMode(mode fs.FileMode) fs.FileMode { return mode.Perm() | mode&fs.ModeSticky }

// unchanged: nobody saved in between.
func (o *writeOp) unchanged(parent *os.Root) error {
	now, err := lstatOf(parent, o.place.name())
	switch {
	case errors.Is(err, fs.ErrNotExist) && !o.place.exists():
		return nil
	case errors.Is(err, fs.ErrNotExist), err == nil && (!o.place.exists() || !now.same(o.place.node)):
		return consent.ErrChanged
	}
	return err
}

// inPlace writes into the file itself, behind a copy of its old contents.
func (o *writeOp) inPlace(ctx context.Context, parent *os.Root, spool *os.File) (err error) {
	if o.e.journal.dir == "" {
		return wire.Errorf(wire.CodeForbidden, "%s cannot be replaced without losing its other names or its owner, and this computer keeps no copies to write it in place.", shown(o.p.Path))
	}
	select {
	case o.e.journal.inPlace <- struct{}{}:
		defer func() { <-o.e.journal.inPlace }()
	case <-ctx.Done():
		return context.Cause(ctx)
	}
	f, err := parent.OpenFile(o.place.name(), os.O_RDWR|openFlags, 0)
	if err != nil {
		return err
	}
	defer f.Close()
	if now, err := lstatFile(f); err != nil {
		return err
	} else if !now.same(o.place.node) {
		return consent.ErrChanged
	}
	old, err := o.e.journal.save(ctx, f, o.place.abs(), o.place.node)
	if err != nil {
		return err
	}
	noted, err := o.j.hold(ctx, o.kept, parent, o.place, rewrites)
	if err != nil {
		old.drop()
		return err
	}
	defer func() { settle(noted, err) }()
	said := fileMetadata(f)
	err = o.copy(ctx, f, spool)
	if err == nil {
		err = f.Truncate(o.up.Size)
	}
	if err == nil {
		err = setMetadata(f, o.p.Metadata)
	}
	if mode := o.place.node.mode; err == nil && mode&(fs.ModeSetuid|fs.ModeSetgid) != 0 {
		err = f.Chmod(plainMode(mode)) // not the system's own rule for root
	}
	if err == nil {
		err = f.Sync()
	}
	if err == nil {
		old.drop()
		return nil
	}
	if merr := setMetadata(f, said); merr != nil {
		o.e.o.Log.Error("A file's metadata could not be put back", "err", merr)
	}
	if berr := old.back(f); berr != nil {
		o.e.o.Log.Error("A half-done write could not be undone; the next start tries again", "err", berr)
	}
	return err
}

// copy takes the upload from the spool, and makes sure that it is what was
// shown.
func (o *writeOp) copy(ctx context.Context, to io.Writer, spool *os.File) error {
	sum := sha256.New()
	buf := make([]byte, min(o.up.Size, pieceSize)+1)
	var total int64
	for {
		if ctx.Err() != nil {
			return context.Cause(ctx)
		}
		n, err := spool.ReadAt(buf, total)
		if n > 0 {
			if _, err := to.Write(buf[:n]); err != nil {
				return err
			}
			sum.Write(buf[:n])
			total += int64(n)
		}
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			return fmt.Errorf("spool: %w", err)
		}
	}
	if hex.EncodeToString(sum.Sum(nil)) != o.up.SHA256 || total != o.up.Size {
		return errors.New("the spool does not hold what was received")
	}
	return nil
}
