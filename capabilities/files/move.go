package files

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"syscall"

	"localpc/capabilities"
	"localpc/consent"
	"localpc/tunnel/wire"
)

// moveOp is FILE_MOVE: one rename. A file takes the place of a file, a folder
// that of an empty one; folders above the new name are made. Links move as
// they are. Between file systems it is a copy, a rename and a delete.
type moveOp struct {
	request
	p        *wire.FileMove
	to       asked
	src, dst place
	same     bool // both names are one place
	kept     bool // what it replaces
	held     bool // what it takes out of the folder
	back     bool // what it moves can be put back
	names    []string
}

func (o *moveOp) look(ctx context.Context) (capabilities.Description, error) {
	from, src, err := o.j.at(o.p.Src, false)
	if err != nil {
		return capabilities.Description{}, err
	}
	if !src.exists() {
		return capabilities.Description{}, notFound(o.p.Src)
	}
	to, dst, err := o.j.at(o.p.Dst, false)
	if err != nil {
		return capabilities.Description{}, err
	}
	o.src, o.dst, o.to = src, dst, to
	if err := o.fits(); err != nil {
		return capabilities.Description{}, err
	}
	t := o.j.count(ctx, src, &dst)
	o.names = t.startup
	linked := cmp.Or(o.j.startupName(src), o.j.startupName(dst))
	if linked != "" && len(o.names) == 0 {
		o.names = []string{linked}
	}
	risk := consent.RiskLow
	if !t.own {
		risk = consent.RiskNormal
	}
	effects := []consent.Effect{{Kind: consent.EffectMove, Text: "moves " + t.words(), Count: t.files + t.dirs, Bytes: t.bytes, Own: t.own}}
	o.held = src.base != dst.base && !t.more && o.would(src, t.bytes)
	if dst.exists() && !o.same {
		o.kept = o.would(dst, max(dst.node.size, 0))
		own := o.j.own(dst, dst.node)
		effects = append(effects, consent.Effect{Kind: consent.EffectOverwrite, Text: "replaces " + named(dst) + undoable(o.kept), Count: 1, Bytes: max(dst.node.size, 0), Own: own, Kept: o.kept})
		if !own {
			risk = max(risk, consent.RiskNormal)
		}
	}
	// A move within the folder is noted, where what was at its end is kept.
	o.back = o.held || src.base == dst.base && !t.more && (o.kept || !dst.exists()) && o.would(src, 0)
	effects[0].Kept = o.back
	if len(o.names) > 0 {
		effects, risk = append(effects, runsElsewhere(o.names)), consent.RiskHigh
	}
	d := changes("move", "Move "+named(src)+" to "+named(dst), fmt.Sprintf("%%s wants to move %s to %s", named(src), named(dst)),
		exact(from, src)+"\nto\n"+exact(to, dst), moveRule(src, dst), risk)
	d.Effects = effects
	d.Payload = payload{Type: wire.TypeFileMove, Path: o.p.Src, Dst: o.p.Dst, Options: options(map[string]bool{"no_replace": o.p.NoReplace, "no_parents": o.p.NoParents})}
	print := fmt.Sprintf("%s\x00%s\x00%s\x00%s\x00", src.key(), src.node.which(), dst.print()+keptPrint(o.kept), linked)
	if d.Fingerprint = print + t.print() + keptPrint(o.back); src.isDir() {
		o.uncounted = print + much
	}
	return d, nil
}

// fits refuses what a rename would refuse, before anybody is asked.
func (o *moveOp) fits() error {
	src, dst := o.src, o.dst
	o.same = src.base == dst.base && src.rel == dst.rel
	switch {
	case src.isRoot() || dst.isRoot():
		return wire.Errorf(wire.CodeInvalid, "The session's own folder can be neither moved nor replaced.")
	case o.p.NoReplace && dst.exists():
		return alreadyThere(o.p.Dst)
	case o.p.NoParents && dst.missing > 1:
		return wire.Errorf(wire.CodePathNotFound, "The folder that %s is to be in is not there.", shown(o.p.Dst))
	case src.base == dst.base && strings.HasPrefix(dst.rel, src.rel+"/"):
		return wire.Errorf(wire.CodeInvalid, "%s cannot be moved into itself.", shown(o.p.Src))
	case dst.isDir() && !src.isDir():
		return wire.Errorf(wire.CodePathKind, "%s is a folder, and a file cannot take its place.", shown(o.p.Dst))
	case dst.exists() && !dst.isDir() && src.isDir():
		return wire.Errorf(wire.CodePathKind, "%s is not a folder, and a folder cannot take its place.", shown(o.p.Dst))
	}
	if dst.isDir() && !o.same {
		if !empty(dst) {
			return wire.Errorf(wire.CodePathNotEmpty, "The folder %s is not empty, so nothing can take its place.", shown(o.p.Dst))
		}
	}
	if err := o.j.mayWrite(place{base: src.base, rel: src.dir()}); err != nil {
		return fileError(err, o.p.Src)
	}
	above := place{base: dst.base, rel: dst.dir(), missing: max(dst.missing-1, 0)}
	return fileError(o.j.mayWrite(above), o.p.Dst)
}

func (o *moveOp) run(ctx context.Context, _ capabilities.Output) (capabilities.Result, error) {
	if !o.same {
		made, err := o.j.makeParents(o.dst)
		if err == nil {
			err = o.move(ctx)
		}
		if err != nil {
			o.j.unmake(made)
			if errors.Is(err, consent.ErrChanged) || ctx.Err() != nil {
				return capabilities.Result{}, err
			}
			return capabilities.Result{}, fileError(err, o.p.Dst)
		}
	}
	p := o.dst
	p.missing = 0
	var err error
	if p.node, err = p.base.lstat(p.rel); err != nil {
		return capabilities.Result{}, fileError(err, o.p.Dst)
	}
	e := o.whole(o.to, p, o.to.reply(p))
	return capabilities.Result{Type: wire.TypeFileStatResponse, Payload: &wire.FileStatResponse{Exists: true, Entry: &e},
		Outcome: "moved", Notes: startupNotes(o.names)}, nil
}

func (o *moveOp) move(ctx context.Context) (err error) {
	from, err := o.src.base.open(o.src.dir())
	if err != nil {
		return err
	}
	defer from.Close()
	to, err := o.dst.base.open(o.dst.dir())
	if err != nil {
		return err
	}
	defer to.Close()
	noted, err := o.noted(ctx, from, to)
	if err != nil {
		return err
	}
	defer func() {
		for _, n := range noted {
			settle(n, err)
		}
	}()
	err = o.place(from, o.src.name(), to)
	if errors.Is(err, syscall.EXDEV) {
		err = o.across(ctx, from, to)
		return err
	}
	if err != nil {
		return err
	}
	o.j.session.Made.Move(o.src.key(), o.dst.key())
	// Two names of one file: the system takes the rename for done, and leaves
	// the first.
	if o.dst.exists() && o.dst.node.id.Same(o.src.node.id) && folded(o.src.rel) != folded(o.dst.rel) {
		err = from.Remove(o.src.name())
	}
	return err
}

// noted notes a move before it is made: within the folder as one, and else as
// what it takes away and what it makes.
func (o *moveOp) noted(ctx context.Context, from, to *os.Root) (all []capabilities.Change, err error) {
	if o.j.notes == nil {
		return nil, nil
	}
	oneFile := o.dst.exists() && o.dst.node.id.Same(o.src.node.id)
	add := func(c capabilities.Change, err error) error {
		if err == nil {
			all = append(all, c)
			return nil
		}
		for _, c := range all {
			c.Not()
		}
		return err
	}
	switch {
	case o.dst.exists() && !oneFile:
		err = add(o.j.hold(ctx, o.kept, to, o.dst, replaces))
	case !o.dst.base.tmp && o.src.base != o.dst.base:
		err = add(o.j.makes(to, o.dst), nil)
	}
	switch {
	case err != nil:
	case oneFile && folded(o.src.rel) != folded(o.dst.rel):
		// One of two names goes.
		err = add(o.j.hold(ctx, o.kept, from, o.src, replaces))
	case o.src.base != o.dst.base:
		err = add(o.j.hold(ctx, o.held, from, o.src, leaves))
	case !o.src.base.tmp && (o.kept || !o.dst.exists() || oneFile):
		err = add(o.j.notes.Moves(o.src.rel, o.dst.rel), nil)
	}
	return all, err
}

// place renames name in from to the new name.
func (o *moveOp) place(from *os.Root, name string, to *os.Root) error {
	if o.dst.exists() {
		return rename(from, name, to, o.dst.name())
	}
	err := renameNew(from, name, to, o.dst.name())
	switch {
	case errors.Is(err, fs.ErrExist) && o.p.NoReplace:
		return alreadyThere(o.p.Dst)
	case errors.Is(err, fs.ErrExist):
		return consent.ErrChanged
	}
	return err
}

func alreadyThere(name string) error {
	return wire.Errorf(wire.CodePathExists, "%s exists already, and was not to be replaced.", shown(name))
}
