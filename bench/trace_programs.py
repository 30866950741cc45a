#!/usr/bin/env python3
"""bench/trace_programs.py FOLDER [--torchvision N] [--timm N] - programs of public architectures.

Writes NAME.infer.json and NAME.train.json (program JSON) for models of torchvision and, if it is
there, timm, with the operators that eager PyTorch executes as statements: the model runs on the
meta device (shapes only, nothing is computed) under a TorchDispatchMode that sees every ATen
operator. Inference is without gradients; training is a forward and a backward pass of the summed
output. Storages are PyTorch's own (views share, in-place operators write); parameters, buffers and
the input are held by the caller: 0 bytes, live throughout. Random operators keep their order.

Picks N models spread evenly over the sorted names of each library, at batch size 1; skips what does
not run on the meta device, and says so. Deterministic for a version of the libraries.
"""

import argparse
import json
import warnings
from pathlib import Path

import torch
from torch.utils._python_dispatch import TorchDispatchMode
from torch.utils._pytree import tree_leaves

MOST = 20_000  # statements


class Recorder(TorchDispatchMode):
    """Records a program: statements (dicts) and storages, by identity."""

    def __init__(self, held):
        super().__init__()
        self.statements, self.storages, self.order = [], [], []
        self.index, self.kept, self.random = {}, [], None
        for tensor in held:
            self.storage(tensor, held=True)

    def storage(self, tensor, held=False):
        """The index of a tensor's storage; one that is kept is never mistaken for a later one."""
        storage = tensor.untyped_storage()
        if storage._cdata not in self.index:
            self.index[storage._cdata] = len(self.storages)
            self.kept.append(storage)
            entry = {"bytes": 0 if held else storage.nbytes()}
            if held:
                entry.update(live_in=True, live_out=True)
            self.storages.append(entry)
        return self.index[storage._cdata]

    def __torch_dispatch__(self, function, types, args=(), kwargs=None):
        kwargs = kwargs or {}
        known = len(self.storages)
        reads = {self.storage(t) for t in tree_leaves((args, kwargs)) if torch.is_tensor(t)}
        # A tensor that no operator made (a constant of the model) exists from the start.
        for s in range(known, len(self.storages)):
            self.storages[s].update(bytes=0, live_in=True, live_out=True)
        out = function(*args, **kwargs)
        known = len(self.storages)
        made = {self.storage(t) for t in tree_leaves(out) if torch.is_tensor(t)}
        fresh = {s for s in made if s >= known}
        mutated = set()
        for value, argument in zip(args, function._schema.arguments):
            if argument.alias_info is not None and argument.alias_info.is_write:
                mutated |= {self.storage(t) for t in tree_leaves(value) if torch.is_tensor(t)}
        for argument in function._schema.arguments:
            alias = argument.alias_info
            if alias is not None and alias.is_write and argument.name in kwargs:
                leaves = tree_leaves(kwargs[argument.name])
                mutated |= {self.storage(t) for t in leaves if torch.is_tensor(t)}
        if fresh or mutated:  # else a view, or nothing that has bytes
            self.statement(function, reads, fresh, mutated)
        return out

    def statement(self, function, reads, fresh, mutated):
        number = len(self.statements)
        if torch.Tag.nondeterministic_seeded in function.tags:
            if self.random is not None:
                self.order.append([self.random, number])
            self.random = number
        self.statements.append(
            {
                "name": function.__name__,
                "reads": sorted(reads),
                "writes": sorted(fresh | mutated),
                "overwrites": sorted(fresh),
            }
        )
        if number > MOST:
            raise RuntimeError(f"more than {MOST} statements")

    def program(self, name, outputs):
        for tensor in outputs:
            self.storages[self.storage(tensor)]["live_out"] = True
        return {
            "peakproof": 1,
            "name": name,
            "statements": self.statements,
            "storages": self.storages,
            "order": self.order,
        }


def trace(name, model, shape, train):
    """Returns the program of one model on an input of a shape."""
    model.train(train)
    x = torch.empty(shape, device="meta")
    held = [x, *model.parameters(), *model.buffers()]
    with Recorder(held) as recorder, torch.set_grad_enabled(train):
        out = [t for t in tree_leaves(model(x)) if torch.is_tensor(t)]
        if train:
            sum(t.sum() for t in out).backward()
            out = [p.grad for p in model.parameters() if p.grad is not None]
    return recorder.program(name, out)


def import_torchvision():
    """The package; also where its compiled half does not fit this torch (only nms misses)."""
    try:
        import torchvision
    except RuntimeError:
        library = torch.library.Library("torchvision", "FRAGMENT")
        import_torchvision.library = library  # its definitions go with it
        for name in ("nms", "qnms"):
            library.define(f"{name}(Tensor dets, Tensor scores, float iou_threshold) -> Tensor")
        import torchvision
    return torchvision


def torchvision_models():
    models = import_torchvision().models
    import torchvision.models.segmentation  # noqa: F401

    for name in models.list_models(module=models):
        size = 299 if name == "inception_v3" else 224
        yield f"tv_{name}", (lambda name=name: models.get_model(name, weights=None)), size
    for name in models.list_models(module=models.segmentation):
        build = lambda name=name: models.get_model(name, weights=None, weights_backbone=None)  # noqa: E731
        yield f"tv_{name}", build, 320


def timm_models():
    try:
        import_torchvision()
        import timm
    except ImportError:
        return
    for name in timm.list_models():
        size = timm.get_pretrained_cfg(name, allow_unregistered=True)
        size = size.input_size[-1] if size is not None else 224
        yield f"timm_{name}", (lambda name=name: timm.create_model(name)), size


def spread(models, count):
    """At most `count` of them, evenly."""
    models = list(models)
    if len(models) <= count:
        return models
    return [models[i * len(models) // count] for i in range(count)]


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--torchvision", type=int, default=1000)
    parser.add_argument("--timm", type=int, default=60)
    options = parser.parse_args()
    options.folder.mkdir(parents=True, exist_ok=True)
    warnings.simplefilter("ignore")
    chosen = spread(torchvision_models(), options.torchvision) if options.torchvision else []
    chosen += spread(timm_models(), options.timm) if options.timm else []
    for name, build, size in chosen:
        name = name.replace("/", "_")
        for mode in ("infer", "train"):
            path = options.folder / f"{name}.{mode}.json"
            if path.exists():
                continue
            try:
                with torch.device("meta"):
                    model = build()
                batch = 2 if mode == "train" else 1  # batch normalisation of 1x1 maps needs two
                program = trace(path.stem, model, (batch, 3, size, size), mode == "train")
            except Exception as problem:  # whatever a model does on the meta device
                print(f"{path.stem}: skipped: {type(problem).__name__} {str(problem)[:100]}")
                continue
            path.with_suffix(".new").write_text(json.dumps(program))
            path.with_suffix(".new").rename(path)
            print(f"{path.stem}: {len(program['statements'])} statements", flush=True)


if __name__ == "__main__":
    main()
