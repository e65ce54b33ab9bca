package files

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"slices"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// makeParents makes the folders that are missing above p. It returns those it
// made, the deepest last.
func (j *jail) makeParents(p place) ([]place, error) {
	if p.missing < 2 {
		return nil, nil
	}
	parent := place{base: p.base, rel: p.dir(), missing: p.missing - 1}
	return j.makeDirs(parent)
}

// makeDirs makes p, which is a folder to be, with what is missing above it.
func (j *jail) makeDirs(p place) (made []place, err error) {
	if p.missing > 1 {
		if made, err = j.makeDirs(place{base: p.base, rel: p.dir(), missing: p.missing - 1}); err != nil {
			return made, err
		}
	}
	parent, err := p.base.open(p.dir())
	if err != nil {
		return made, err
	}
	defer parent.Close()
	noted := j.makes(parent, place{base: p.base, rel: p.rel})
	err = parent.Mkdir(p.name(), 0o777) // less the umask
	settle(noted, err)
	switch {
	case errors.Is(err, fs.ErrExist):
		return made, nil // somebody else was quicker
	case err != nil:
		return made, err
	}
	if j.made == nil {
		j.made = map[string]capabilities.Change{}
	}
	j.made[p.key()] = noted
	if n, err := lstatOf(parent, p.name()); err == nil {
		j.session.Made.Add(p.key(), n.id)
	}
	return append(made, place{base: p.base, rel: p.rel}), nil
}

// unmake removes folders again that turned out to be for nothing, as far as
// they are empty.
func (j *jail) unmake(made []place) {
	for _, p := range slices.Backward(made) {
		parent, err := p.base.open(p.dir())
		if err != nil {
			return
		}
		if parent.Remove(p.name()) == nil {
			j.session.Made.Forget(p.key())
			if noted := j.made[p.key()]; noted != nil {
				noted.Not()
			}
		}
		parent.Close()
	}
}

// mkdirOp is FILE_MKDIR: a folder, with those above it.
type mkdirOp struct {
	request
	p     *wire.FilePath
	asked asked
	place place
	names []string // start-up names it changes
}

func (o *mkdirOp) look(context.Context) (capabilities.Description, error) {
	var err error
	if o.asked, o.place, err = o.j.at(o.p.Path, true); err != nil {
		return capabilities.Description{}, err
	}
	p := o.place
	switch {
	case p.isDir():
		return capabilities.Description{}, wire.Errorf(wire.CodePathExists, "The folder %s exists already.", shown(o.p.Path))
	case p.exists():
		return capabilities.Description{}, wire.Errorf(wire.CodePathKind, "%s exists already, and is not a folder.", shown(o.p.Path))
	}
	if err := o.j.mayWrite(p); err != nil {
		return capabilities.Description{}, fileError(err, o.p.Path)
	}
	// An empty folder runs nothing, but one inside a folder of which other
	// programs run everything is theirs to deal with.
	if above := (place{base: p.base, rel: p.dir()}); startup(above) {
		o.names = []string{p.key()}
	}
	risk, effects := consent.RiskLow, []consent.Effect{{Kind: consent.EffectCreate, Text: "makes " + count(p.missing, "folder", "folders", false), Count: p.missing}}
	if len(o.names) > 0 {
		risk, effects = consent.RiskHigh, append(effects, runsElsewhere(o.names))
	}
	d := changes("mkdir", "Make the folder "+named(p), "%s wants to make the folder "+named(p), exact(o.asked, p), p.key(), risk)
	d.Effects = effects
	d.Payload = payload{Type: wire.TypeFileMkdir, Path: o.p.Path}
	d.Fingerprint = p.print()
	return d, nil
}

func (o *mkdirOp) run(context.Context, capabilities.Output) (capabilities.Result, error) {
	made, err := o.j.makeDirs(o.place)
	if err != nil {
		o.j.unmake(made)
		if errors.Is(err, consent.ErrChanged) {
			return capabilities.Result{}, err
		}
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	if len(made) == 0 {
		return capabilities.Result{}, wire.Errorf(wire.CodePathExists, "%s exists already.", shown(o.p.Path))
	}
	p := o.place
	p.missing = 0
	if p.node, err = p.base.lstat(p.rel); err != nil {
		return capabilities.Result{}, fileError(err, o.p.Path)
	}
	e := o.whole(o.asked, p, o.asked.reply(p))
	return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{Exists: true, Entry: &e},
		Outcome: count(len(made), "folder", "folders", false) + " made", Notes: startupNotes(o.names)}, nil
}

// deleteOp is FILE_DELETE: what is at a name, with all below it; a link itself
// and not what it leads to. Nothing there is no error, unless so asked.
type deleteOp struct {
	request
	p     *wire.FileDelete
	place place
	none  bool
	kept  bool // what it deletes
	names []string
}

func (o *deleteOp) look(ctx context.Context) (capabilities.Description, error) {
	a, p, err := o.j.at(o.p.Path, false)
	if errors.Is(err, errNotFolder) {
		o.none, err = true, nil
		p = place{base: a.base, rel: path.Join(a.rest...), missing: 1}
	}
	if err != nil {
		return capabilities.Description{}, err
	}
	o.place, o.none = p, o.none || !p.exists()
	switch {
	case p.isRoot():
		return capabilities.Description{}, wire.Errorf(wire.CodeInvalid, "The session's own folder cannot be deleted. Delete what is in it instead.")
	case o.none && o.p.MustExist:
		return capabilities.Description{}, notFound(o.p.Path)
	case o.p.OnlyEmpty && p.isDir() && !empty(p):
		return capabilities.Description{}, notEmpty(o.p.Path)
	}
	sentence := "%s wants to delete " + named(p)
	var d capabilities.Description
	if o.none {
		// Nothing will happen, so there is nothing to be asked about.
		d = looksOnly("delete", "Delete "+named(p), sentence, exact(a, p), p)
		d.Effects = []consent.Effect{{Kind: consent.EffectRead, Text: "finds nothing to delete"}}
		d.Fingerprint = p.key() + "\x00nothing"
	} else {
		if err := o.mayDelete(); err != nil {
			return capabilities.Description{}, fileError(err, o.p.Path)
		}
		t := o.j.count(ctx, p, nil)
		risk := consent.RiskNormal
		if t.own {
			risk = consent.RiskLow
		} else {
			o.names = t.startup
			if name := o.j.startupName(p); name != "" && len(o.names) == 0 {
				o.names = []string{name}
			}
			if t.more || len(o.names) > 0 {
				risk = consent.RiskHigh
			}
		}
		o.kept = !t.more && o.would(p, t.bytes)
		if p.isDir() || t.bytes > 0 {
			sentence += " (" + t.words() + ")"
		}
		d = changes("delete", "Delete "+named(p), sentence, exact(a, p), p.key(), risk)
		d.Effects = []consent.Effect{{Kind: consent.EffectDelete, Text: "deletes " + t.words() + undoable(o.kept), Count: t.files + t.dirs, Bytes: t.bytes, Own: t.own, Kept: o.kept}}
		if len(o.names) > 0 {
			d.Effects = append(d.Effects, runsElsewhere(o.names))
		}
		print := p.print() + "\x00"
		if p.isDir() {
			// What counts is in the tally; a folder's own times are not shown.
			print = fmt.Sprintf("%s\x00%s %v\x00", p.key(), p.node.which(), p.node.mode)
			o.uncounted = print + much
		}
		d.Fingerprint = print + t.print() + keptPrint(o.kept)
	}
	d.Payload = payload{Type: wire.TypeFileDelete, Path: o.p.Path, Options: options(map[string]bool{"only_empty": o.p.OnlyEmpty, "must_exist": o.p.MustExist})}
	return d, nil
}

func (o *deleteOp) mayDelete() error {
	return o.j.mayWrite(place{base: o.place.base, rel: o.place.dir()})
}

func (o *deleteOp) run(ctx context.Context, _ capabilities.Output) (capabilities.Result, error) {
	res := capabilities.Result{Type: wire.TypeAck, Payload: &wire.Empty{}, Outcome: "nothing was there"}
	if o.none {
		return res, nil
	}
	parent, err := o.place.base.open(o.place.dir())
	if errors.Is(err, consent.ErrChanged) {
		return res, err
	}
	if err != nil {
		return res, fileError(err, o.p.Path)
	}
	defer parent.Close()
	n, err := o.remove(ctx, parent)
	if errors.Is(err, consent.ErrChanged) {
		return res, err
	}
	if err == nil && o.p.MustExist && n == (removed{}) {
		err = notFound(o.p.Path)
	}
	if err != nil {
		res.Outcome = n.words() + " deleted, the rest was left"
		return res, fileError(err, o.p.Path)
	}
	o.j.session.Made.ForgetTree(o.place.key())
	res.Outcome, res.Notes = n.words()+" deleted", startupNotes(o.names)
	return res, nil
}

// remove deletes, or has it moved away where it is kept.
func (o *deleteOp) remove(ctx context.Context, parent *os.Root) (n removed, err error) {
	noted := capabilities.Change(unnoted{})
	if o.kept && o.j.notes != nil {
		now := place{base: o.place.base, rel: o.place.rel}
		if now.node, err = lstatOf(parent, o.place.name()); err == nil {
			t := o.j.count(ctx, now, nil)
			n = removed{files: t.files, dirs: t.dirs}
		}
		if o.p.OnlyEmpty && now.isDir() && !empty(now) {
			return removed{}, notEmpty(o.p.Path)
		}
		o.e.deleted.note(o.place.abs())
		gone := false
		if noted, gone, err = o.j.notes.Takes(ctx, parent, o.place.rel); err != nil && ctx.Err() == nil {
			return removed{}, consent.ErrChanged
		}
		if err != nil || gone {
			if gone {
				noted.Done()
			}
			return n, err
		}
		n = removed{}
	}
	if o.p.OnlyEmpty {
		err = removeOne(parent, o.place, &n)
	} else {
		err = removeTree(ctx, parent, o.place.name(), &n)
	}
	if n == (removed{}) {
		noted.Not()
	} else {
		noted.Done()
	}
	return n, err
}

func (n removed) words() string { return tally{files: n.files, dirs: n.dirs}.words() }
