"""Numbers of labelled regions, with the signatures of scipy.ndimage.

Every function takes labels and an index. Without labels all of the image is one region; without an index all labels above 0 are;
a list gives a result for each of its labels, 0 for one that is not there."""
import numpy as np

__all__ = ["center_of_mass", "extrema", "histogram", "labeled_comprehension", "maximum", "maximum_position", "mean", "median",
           "minimum", "minimum_position", "standard_deviation", "sum", "sum_labels", "variance"]


_PIECE = 1 << 17  # voxels


# ---------------------------------------------------------------- regions

class _Regions:
    """Values of an image by region. one: there is one result, not a list; number: the region of each value, 0 to known - 1.

    sums: all that is wanted are sums; then labels may be numbers of regions themselves, also those that nobody asked for."""

    def __init__(self, input, labels, index, sums=False):
        self.array = np.asarray(input)
        self.index_shape, self.count, self.one = (), 1, True
        self.where = None  # positions in the flat image of the values that belong to a region; None: all
        self.number = None  # the region of each of them; None: the only one
        if labels is None:
            if index is not None and not np.isscalar(index) and np.ndim(index):
                raise ValueError("an index needs labels")
            self.values = self.array.ravel()
            return
        image, labels = self.array, np.asarray(labels)
        if image.shape != labels.shape:
            image, labels = np.broadcast_arrays(image, labels)
        self.array, flat = image, labels.ravel()
        if index is None or np.ndim(index) == 0:
            chosen = flat > 0 if index is None else flat == index
            self.where = np.flatnonzero(chosen)
            self.values = image.ravel()[self.where]
            return
        index = np.asarray(index)
        self.index_shape, self.one, self.count = index.shape, False, index.size
        if sums and self._number_by_label(flat, index.ravel()):
            self.values = image.ravel()
            return
        wanted, self.back = np.unique(index.ravel(), return_inverse=True)
        self.known = len(wanted)
        between = (flat >= wanted[0]) & (flat <= wanted[-1]) if self.known else np.zeros(len(flat), bool)
        if not between.all():  # most of what nobody asked for, at little cost
            self.where = np.flatnonzero(between)
            flat = flat[self.where]
        number = _numbers(flat, wanted)
        there = np.flatnonzero(number >= 0)
        if len(there) < len(number):
            self.where = there if self.where is None else self.where[there]
            number = number[there]
        self.values = image.ravel() if self.where is None else image.ravel()[self.where]
        self.number = number

    def _number_by_label(self, flat, index):
        """True if the labels can be numbers of regions; then they are. The last region is that of labels that are not there."""
        if flat.dtype.kind not in "iub" or index.dtype.kind not in "iub" or not len(flat) or flat.min() < 0:
            return False
        high = int(flat.max())
        if high > 4 * len(flat) + 1024:
            return False
        self.known = high + 2
        self.number = flat.astype(np.intp, copy=False) if len(flat) <= _PIECE or flat.dtype.kind == "b" else flat
        self.back = np.where((index < 0) | (index > high), high + 1, index).astype(np.intp, copy=False)
        return True

    def sums(self, values):
        """The sum of values over each region."""
        if self.number is None:
            return values.sum()
        if values.dtype.kind == "c":
            return self.shaped(self._sums(values.real) + 1j * self._sums(values.imag))
        return self.shaped(self._sums(values))

    def _sums(self, values=None):
        """The sum of values over each known region; without any, how many there are. By pieces, so that what numpy converts stays
        in the cache."""
        if len(self.number) <= _PIECE:
            return np.bincount(self.number, values, self.known)
        step = max(_PIECE, 4 * self.known)
        parts = [slice(first, first + step) for first in range(0, len(self.number), step)]
        return np.add.reduce([np.bincount(self.number[p], None if values is None else values[p], self.known) for p in parts])

    def counts(self):
        """How many voxels each region has."""
        if self.number is None:
            return self.values.size
        return self.shaped(self._sums())

    def shaped(self, values):
        """A value of each known region as one of each entry of the index."""
        return values[self.back].reshape(self.index_shape)

    def together(self):
        """An order of the values by region, where each region begins in it, and how many values it has."""
        number = self.number.astype(np.uint16) if self.known < 1 << 16 else self.number  # for which numpy has a faster way
        counts = np.bincount(self.number, minlength=self.known)
        return np.argsort(number, kind="stable"), np.cumsum(counts) - counts, counts

    def sorted(self):
        """An order of the values by region and then by size, where each region begins in it, and how many values it has."""
        if self.number is None:
            order = np.argsort(self.values, kind="stable")
            return order, np.zeros(1, int), np.array([len(order)])
        order = np.lexsort((self.values, self.number))
        counts = np.bincount(self.number, minlength=self.known)
        return order, np.cumsum(counts) - counts, counts

    def picked(self, values, places, counts):
        """The values at places, 0 for regions that have none."""
        found = np.zeros(len(counts), values.dtype)
        there = counts > 0
        found[there] = values[places[there]]
        return found[0] if self.number is None else self.shaped(found)

    def flat_places(self, positions):
        """Positions among the values as positions in the image."""
        return positions if self.where is None else self.where[positions]


def _numbers(flat, wanted):
    """The place of each label among the wanted ones, -1 where it is none of them."""
    if flat.dtype.kind in "iub" and wanted.dtype.kind in "iub" and len(flat):
        low, high = int(flat.min()), int(flat.max())
        if high - low <= 4 * len(flat) + 1024:
            low = 0 if 0 <= low <= len(flat) else low
            table = np.full(high - low + 1, -1)
            inside = (wanted >= low) & (wanted <= high)
            table[wanted[inside].astype(np.int64) - low] = np.flatnonzero(inside)
            return table.take(flat if low == 0 and flat.dtype.kind != "b" else flat.astype(np.int64) - low, mode="clip")
    place = np.searchsorted(wanted, flat)
    place[place == len(wanted)] = 0
    return np.where(wanted[place] == flat, place, -1) if len(wanted) else np.full(len(flat), -1)


# ---------------------------------------------------------------- sums

def sum_labels(input, labels=None, index=None):
    """The sum of each region."""
    regions = _Regions(input, labels, index, sums=True)
    return regions.sums(regions.values)


def sum(input, labels=None, index=None):
    """The sum of each region."""
    return sum_labels(input, labels, index)


def mean(input, labels=None, index=None):
    """The mean of each region."""
    regions = _Regions(input, labels, index, sums=True)
    return regions.sums(regions.values) / np.asanyarray(regions.counts()).astype(np.float64)


def variance(input, labels=None, index=None):
    """The variance of each region, of all its voxels."""
    regions = _Regions(input, labels, index, sums=True)
    if regions.number is None:
        counts = float(regions.values.size)
        apart = regions.values - regions.values.sum() / counts
    else:
        every = regions._sums()
        counts = regions.shaped(every).astype(np.float64)
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = regions._sums(regions.values) / every
        apart = regions.values - middle[regions.number]
    return regions.sums(apart * apart if apart.dtype.kind != "c" else (apart * apart.conj()).real) / counts


def standard_deviation(input, labels=None, index=None):
    """The standard deviation of each region."""
    return np.sqrt(variance(input, labels, index))


def center_of_mass(input, labels=None, index=None):
    """The middle of each region, weighted with the values."""
    regions = _Regions(input, labels, index, sums=True)
    total = regions.sums(regions.values)
    found = [regions.sums(_weighted(regions, position)) / total for position in np.ogrid[tuple(map(slice, regions.array.shape))]]
    if regions.one:
        return tuple(found)
    return [tuple(row) for row in np.array(found).T]


def _weighted(regions, position):
    """The values times their positions along an axis."""
    position = position.astype(float)
    if regions.where is None:
        return (regions.array * position).ravel()
    return regions.values * np.broadcast_to(position, regions.array.shape).ravel()[regions.where]


# ---------------------------------------------------------------- order

def _needed(regions):
    if regions.number is None and len(regions.values) == 0 and regions.where is None:
        raise ValueError("an image without voxels has no extreme value")


def minimum(input, labels=None, index=None):
    """The smallest value of each region."""
    return _extreme_values(input, labels, index)[0]


def maximum(input, labels=None, index=None):
    """The largest value of each region."""
    return _extreme_values(input, labels, index)[1]


def _extreme_values(input, labels, index):
    """The smallest and largest value of each region; and what they were found from."""
    regions = _Regions(input, labels, index)
    smallest, largest, counts = _extremes(regions)
    return [regions.picked(regions.values, p, counts) for p in (smallest, largest)] + [regions, smallest, largest]


def _extremes(regions):
    """Positions of the first smallest and of the first largest value of each region, and its number of values."""
    _needed(regions)
    if regions.number is None:
        count = np.array([len(regions.values)])
        if not count[0]:
            return np.zeros(1, int), np.zeros(1, int), count
        return np.array([regions.values.argmin()]), np.array([regions.values.argmax()]), count
    order, first, counts = regions.together()
    smallest, largest, there = np.zeros(len(counts), int), np.zeros(len(counts), int), counts > 0
    if not there.any():
        return smallest, largest, counts
    values = regions.values[order]
    if values.dtype.kind == "c" or (values.dtype.kind == "f" and np.isnan(values.sum())):
        order, first, counts = regions.sorted()  # nan comes last, complex numbers by their real parts
        smallest[there], largest[there] = order[first[there]], order[(first + counts - 1)[there]]
        return smallest, largest, counts
    begin, length = first[there], counts[there]
    low = np.flatnonzero(values == np.repeat(np.minimum.reduceat(values, begin), length))
    high = np.flatnonzero(values == np.repeat(np.maximum.reduceat(values, begin), length))
    smallest[there] = order[low[np.searchsorted(low, begin)]]
    largest[there] = order[high[np.searchsorted(high, begin + length) - 1]]
    return smallest, largest, counts


def extrema(input, labels=None, index=None):
    """The smallest and largest value of each region, and where they are."""
    low, high, regions, smallest, largest = _extreme_values(input, labels, index)
    return low, high, _places(regions, smallest), _places(regions, largest)


def _places(regions, positions):
    shape = regions.array.shape
    flat = regions.flat_places(positions) if len(regions.values) else np.zeros_like(positions)
    found = np.array(np.unravel_index(flat, shape)).T.reshape(len(positions), len(shape))
    if regions.one:
        return tuple(found[0])
    return [tuple(row) for row in found[regions.back]]


def minimum_position(input, labels=None, index=None):
    """Where the smallest value of each region is."""
    return extrema(input, labels, index)[2]


def maximum_position(input, labels=None, index=None):
    """Where the largest value of each region is."""
    return extrema(input, labels, index)[3]


def median(input, labels=None, index=None):
    """The middle value of each region, or the mean of the two middle ones."""
    regions = _Regions(input, labels, index)
    _needed(regions)
    order, first, counts = regions.sorted()
    middle = []
    for places in (first + np.maximum(counts - 1, 0) // 2, first + counts // 2):
        found = np.zeros(len(counts))
        found[counts > 0] = regions.values[order[places[counts > 0]]]
        middle.append(found)
    found = (middle[0] + middle[1]) / 2
    if regions.values.dtype.kind == "f":
        found = found.astype(regions.values.dtype)
    return found[0] if regions.number is None else regions.shaped(found)


# ---------------------------------------------------------------- functions of yours

def labeled_comprehension(input, labels, index, func, out_dtype, default, pass_positions=False):
    """A function of yours of the values of each region."""
    array = np.asarray(input)
    if labels is None:
        if index is not None:
            raise RuntimeError("index without defined labels")
        values = array.ravel()
        return func(values, np.arange(array.size)) if pass_positions else func(values)
    try:
        array, labels = np.broadcast_arrays(array, np.asarray(labels))
    except ValueError:
        raise RuntimeError("input and labels must have the same shape (excepting dimensions with width 1)") from None
    regions = _Regions(array, labels, index)
    positions = np.arange(array.size) if regions.where is None else regions.where
    if regions.one:
        if len(regions.values) == 0 and index is not None:
            return np.array([default], dtype=out_dtype)[0]
        found = func(regions.values, positions) if pass_positions else func(regions.values)
        if index is None or np.ndim(found):
            return found
        return np.array([found], dtype=out_dtype)[0]
    output = np.full(regions.known, default, out_dtype)
    order = np.argsort(regions.number, kind="stable")
    counts = np.bincount(regions.number, minlength=regions.known)
    for k, part in enumerate(np.split(order, np.cumsum(counts)[:-1]) if regions.known else []):
        if len(part):
            output[k] = func(regions.values[part], positions[part]) if pass_positions else func(regions.values[part])
    return regions.shaped(output)


def histogram(input, min, max, bins, labels=None, index=None):
    """How many values of each region fall into each of some equal bins."""
    edges = np.linspace(min, max, bins + 1)
    if labels is None or index is None or np.ndim(index) == 0 or np.iscomplexobj(input) or not max > min:
        return labeled_comprehension(input, labels, index, lambda values: np.histogram(values, edges)[0], object, None)
    regions = _Regions(input, labels, index)
    counts = np.zeros(regions.known * bins, np.intp)
    for first in range(0, len(regions.values), _PIECE):
        values = regions.values[first:first + _PIECE].astype(np.float64, copy=False)
        number = regions.number[first:first + _PIECE]
        inside = (values >= edges[0]) & (values <= edges[-1])
        if not inside.all():
            values, number = values[inside], number[inside]
        bin_of = np.minimum(((values - min) * (bins / (max - min))).astype(np.intp), bins - 1)
        bin_of -= values < edges[bin_of]  # rounding may be one off
        bin_of += (values >= edges[bin_of + 1]) & (bin_of < bins - 1)
        counts += np.bincount(number * bins + bin_of, minlength=len(counts))
    counts = counts.reshape(regions.known, bins)
    found = np.full(regions.known, None, object)
    for k in np.flatnonzero(np.bincount(regions.number, minlength=regions.known)).tolist():
        found[k] = counts[k]
    return regions.shaped(found)
