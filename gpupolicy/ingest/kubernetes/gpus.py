"""How many GPUs a pod holds: devices, slices of one (MIG), and shares of one, from what its containers ask for."""

from __future__ import annotations

import re
from dataclasses import dataclass

from gpupolicy.ingest.kubernetes.objects import Fields, KubeObject, entries, inner

GPU_RESOURCES = frozenset({
    "amd.com/gpu", "gpu.intel.com/i915", "gpu.intel.com/xe", "habana.ai/gaudi", "nvidia.com/gpu",
    "nvidia.com/gpu.shared",
})  # fmt: skip
SLICES_PER_GPU = 7
_MIG = re.compile(r"nvidia[._]com[/_]mig[-_](\d)g[._]\d+gb(?:[._].*)?")  # Prometheus has underscores
_DIVIDED = re.compile(r"nvidia\.com/(?:gpu|.*\.shared)")  # what time slicing may give to several pods
_SHARED = ".shared"
_QUANTITY = re.compile(r"(\d+(?:\.\d+)?)(m|k|)")
_SCALE = {"m": 1e-3, "": 1.0, "k": 1e3}

_PERCENT = ("nvidia.com/gpucores", "nvidia.com/gpumem-percentage")  # HAMi
# KAI and Run:ai
_FRACTION, _FRACTION_DEVICES, _FRACTION_MEMORY = "gpu-fraction", "gpu-fraction-num-devices", "gpu-memory"


@dataclass(frozen=True, slots=True)
class Gpus:
    """What a pod holds: GPUs of its own, and devices that its host may have divided among several pods.

    `is_shared` where the very name of the device says so. `is_known` is False where it asks for a part of a GPU
    that nobody can tell.
    """

    own: float = 0.0
    devices: float = 0.0
    is_shared: bool = False
    is_known: bool = True

    def count(self, part_of_device: float) -> float:
        return self.own + self.devices * part_of_device


def gpu_part(resource: str, resources: frozenset[str] = GPU_RESOURCES) -> float | None:
    """How much of a GPU one of a resource is; None if it is none. Of MIG slices seven make one."""
    if slices := _MIG.fullmatch(resource):
        return int(slices[1]) / SLICES_PER_GPU
    return 1.0 if resource in resources else None


def pod_gpus(each: KubeObject, template: Fields, resources: frozenset[str]) -> Gpus:
    """The GPUs of a pod or of a template of pods; a count that is no number is a fault of the object.

    Containers run side by side and add up; so do init containers that never end (side cars). The others run one
    after another before them, beside the side cars that stand before them, so the pod holds the larger of the two
    (case k8-03; Kubernetes' page on init containers).
    """
    spec = inner(template, "spec")
    side_cars, at_first = Gpus(), Gpus()
    for container in entries(spec, "initContainers"):
        held = _container_gpus(each, container, resources)
        beside = _together(side_cars, held)
        side_cars = beside if container.get("restartPolicy") == "Always" else side_cars
        at_first = max(at_first, beside, key=_size)
    running = side_cars
    for container in entries(spec, "containers"):
        running = _together(running, _container_gpus(each, container, resources))
    held = _together(max(running, at_first, key=_size), _annotated(each, template))
    return held if _size(held) else Gpus(is_known=not _asks_unknown(template, resources))


def quantity(text: object) -> float | None:
    """A Kubernetes quantity of devices: 8, "8", "500m" or "1k"; None if it is none."""
    match = _QUANTITY.fullmatch(str(text).strip())
    return float(match[1]) * _SCALE[match[2]] if match else None


def _together(one: Gpus, other: Gpus) -> Gpus:
    return Gpus(one.own + other.own, one.devices + other.devices, one.is_shared or other.is_shared)


def _size(held: Gpus) -> float:
    return held.count(1)


def _container_gpus(each: KubeObject, container: Fields, resources: frozenset[str]) -> Gpus:
    asked = _asked(container)
    own = devices = 0.0
    for resource, text in asked.items():
        part = gpu_part(resource, resources)
        if part is None:
            continue
        number = quantity(text)
        if number is None:
            each.refuse("bad_number", f"{resource} '{text}'")
        elif _DIVIDED.fullmatch(resource):
            devices += number * part
        else:
            own += number * part
    share = _share(asked)
    is_shared = any(name.endswith(_SHARED) for name in asked)
    return Gpus(own, devices, is_shared) if share is None else Gpus(own + devices * share)


def _asked(container: Fields) -> Fields:
    """Limits alone are requests too, and of devices both are the same (case k8-03)."""
    return {**inner(container, "resources", "limits"), **inner(container, "resources", "requests")}


def _share(asked: Fields) -> float | None:
    """The share of each card that HAMi is asked for, by cores or else by memory (case k8-04)."""
    told = (quantity(asked[name]) for name in _PERCENT if name in asked)
    percent = next((number for number in told if number is not None), None)
    return None if percent is None else min(percent, 100) / 100


def _annotated(each: KubeObject, template: Fields) -> Gpus:
    said = inner(template, "metadata", "annotations")
    if _FRACTION not in said:
        return Gpus()
    fraction, devices = quantity(said[_FRACTION]), quantity(said.get(_FRACTION_DEVICES, 1))
    if fraction is None or devices is None:
        each.refuse("bad_number", f"{_FRACTION} '{said[_FRACTION]}'")
    return Gpus((fraction or 0) * (devices or 0))


def _asks_unknown(template: Fields, resources: frozenset[str]) -> bool:
    """Whether a pod without a GPU that we can count asks for one all the same: by memory, claim or another name."""
    spec = inner(template, "spec")
    names = {name for container in entries(spec, "containers") for name in _asked(container)}
    by_name = any("gpu" in name.casefold() and gpu_part(name, resources) is None for name in names)
    by_memory = _FRACTION_MEMORY in inner(template, "metadata", "annotations")
    return by_name or by_memory or bool(entries(spec, "resourceClaims"))
