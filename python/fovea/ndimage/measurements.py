"""Numbers of labelled regions, with the signatures of scipy.ndimage.

Every function takes labels and an index. Without labels all of the image is one region; without an index all labels above 0 are;
a list gives a result for each of its labels, 0 for one that is not there."""
import numpy as np

__all__ = ["center_of_mass", "extrema", "histogram", "labeled_comprehension", "maximum", "maximum_position", "mean", "median",
           "minimum", "minimum_position", "standard_deviation", "sum", "sum_labels", "variance"]


# ---------------------------------------------------------------- regions

class _Regions:
    """Values of an image by region. one: there is one result, not a list; number: the region of each value, 0 to count - 1."""

    def __init__(self, input, labels, index):
        self.array = np.asarray(input)
        self.index_shape, self.count, self.one = (), 1, True
        self.where = None  # positions in the flat image of the values that belong to a region; None: all
        self.number = None  # the region of each of them; None: the only one
        if labels is None:
            if index is not None and not np.isscalar(index) and np.ndim(index):
                raise ValueError("an index needs labels")
            self.values = self.array.ravel()
            return
        image, labels = np.broadcast_arrays(self.array, np.asarray(labels))
        self.array, flat = image, labels.ravel()
        if index is None or np.ndim(index) == 0:
            chosen = flat > 0 if index is None else flat == index
            self.where = np.flatnonzero(chosen)
            self.values = image.ravel()[self.where]
            return
        index = np.asarray(index)
        self.index_shape, self.one, self.count = index.shape, False, index.size
        wanted, self.back = np.unique(index.ravel(), return_inverse=True)
        self.known = len(wanted)
        number = _numbers(flat, wanted)
        if number.min(initial=0) < 0:
            self.where = np.flatnonzero(number >= 0)
            number = number[self.where]
            self.values = image.ravel()[self.where]
        else:
            self.values = image.ravel()
        self.number = number

    def sums(self, values):
        """The sum of values over each region."""
        if self.number is None:
            return values.sum()
        if values.dtype.kind == "c":
            return self.shaped(self._sums(values.real) + 1j * self._sums(values.imag))
        return self.shaped(self._sums(values))

    def _sums(self, values):
        return np.bincount(self.number, weights=values, minlength=self.known)

    def counts(self):
        """How many voxels each region has."""
        if self.number is None:
            return self.values.size
        return self.shaped(np.bincount(self.number, minlength=self.known))

    def shaped(self, values):
        """A value of each known region as one of each entry of the index."""
        return values[self.back].reshape(self.index_shape)

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
            table = np.full(high - low + 1, -1)
            inside = (wanted >= low) & (wanted <= high)
            table[wanted[inside].astype(np.int64) - low] = np.flatnonzero(inside)
            return table[flat.astype(np.int64) - low]
    place = np.searchsorted(wanted, flat)
    place[place == len(wanted)] = 0
    return np.where(wanted[place] == flat, place, -1) if len(wanted) else np.full(len(flat), -1)


# ---------------------------------------------------------------- sums

def sum_labels(input, labels=None, index=None):
    """The sum of each region."""
    regions = _Regions(input, labels, index)
    return regions.sums(regions.values)


def sum(input, labels=None, index=None):
    """The sum of each region."""
    return sum_labels(input, labels, index)


def mean(input, labels=None, index=None):
    """The mean of each region."""
    regions = _Regions(input, labels, index)
    return regions.sums(regions.values) / np.asanyarray(regions.counts()).astype(np.float64)


def variance(input, labels=None, index=None):
    """The variance of each region, of all its voxels."""
    regions = _Regions(input, labels, index)
    counts = np.asanyarray(regions.counts()).astype(np.float64)
    if regions.number is None:
        middle = regions.values.sum() / counts
        apart = regions.values - middle
    else:
        with np.errstate(invalid="ignore", divide="ignore"):
            middle = regions._sums(regions.values) / np.bincount(regions.number, minlength=regions.known)
        apart = regions.values - middle[regions.number]
    return regions.sums((apart * apart.conj()).real) / counts


def standard_deviation(input, labels=None, index=None):
    """The standard deviation of each region."""
    return np.sqrt(variance(input, labels, index))


def center_of_mass(input, labels=None, index=None):
    """The middle of each region, weighted with the values."""
    regions = _Regions(input, labels, index)
    total = regions.sums(regions.values)
    position = np.unravel_index(np.arange(regions.array.size) if regions.where is None else regions.where, regions.array.shape)
    found = [regions.sums(regions.values * p.astype(float)) / total for p in position]
    if regions.one:
        return tuple(found)
    return [tuple(row) for row in np.array(found).T]


# ---------------------------------------------------------------- order

def _needed(regions):
    if regions.number is None and len(regions.values) == 0 and regions.where is None:
        raise ValueError("an image without voxels has no extreme value")


def minimum(input, labels=None, index=None):
    """The smallest value of each region."""
    return extrema(input, labels, index)[0]


def maximum(input, labels=None, index=None):
    """The largest value of each region."""
    return extrema(input, labels, index)[1]


def _extremes(regions):
    """Positions of the first smallest and of the first largest value of each region, and its number of values."""
    _needed(regions)
    if regions.number is None:
        count = np.array([len(regions.values)])
        if not count[0]:
            return np.zeros(1, int), np.zeros(1, int), count
        return np.array([regions.values.argmin()]), np.array([regions.values.argmax()]), count
    order, first, counts = regions.sorted()
    last = first + counts - 1
    largest = np.zeros(len(counts), int)
    there = counts > 0
    smallest = np.zeros(len(counts), int)
    smallest[there] = order[first[there]]
    largest[there] = order[last[there]]
    return smallest, largest, counts


def extrema(input, labels=None, index=None):
    """The smallest and largest value of each region, and where they are."""
    regions = _Regions(input, labels, index)
    smallest, largest, counts = _extremes(regions)
    values = [regions.picked(regions.values, p, counts) for p in (smallest, largest)]
    return (*values, *(_places(regions, p) for p in (smallest, largest)))


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
    return labeled_comprehension(input, labels, index, lambda values: np.histogram(values, edges)[0], object, None)
