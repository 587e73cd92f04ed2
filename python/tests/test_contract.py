"""`tensordot`, `matmul` and `transpose` beside NumPy's."""

import numpy as np
import pytest

import certen


@pytest.mark.parametrize(
    ("left", "right", "axes"),
    [
        ((2, 3), (3, 4), 1),
        ((2, 3, 4), (3, 4, 5), 2),
        ((2, 3), (4, 5), 0),
        ((2, 3, 4), (4, 5, 2), ([0, 2], [2, 0])),
        ((2, 3, 4), (4, 5, 2), ((-1,), (0,))),
        ((2, 3), (3, 2), (1, 0)),
        ((0, 3), (3, 4), 1),
        ((2, 0), (0, 4), 1),
    ],
)
def test_tensordot(left, right, axes):
    a, b = np.arange(float(np.prod(left))).reshape(left), np.arange(float(np.prod(right))).reshape(right) - 3
    found, expected = certen.tensordot(a, b, axes), np.tensordot(a, b, axes)
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize("axes", [1, 3, ([0], [1, 0]), ([0, 0], [1, 1]), ([5], [0]), ([0, 1], [0])])
def test_tensordot_that_does_not_fit(axes):
    a, b = np.ones((2, 3)), np.ones((4, 2))
    with pytest.raises((ValueError, IndexError)):
        np.tensordot(a, b, axes)
    with pytest.raises((ValueError, IndexError)):
        certen.tensordot(a, b, axes)


@pytest.mark.parametrize(
    ("left", "right"),
    [((2, 3), (3, 4)), ((3,), (3, 4)), ((2, 3), (3,)), ((3,), (3,)), ((5, 2, 3), (3, 4)), ((5, 1, 2, 3), (7, 3, 4))],
)
def test_matmul(left, right):
    a, b = np.arange(float(np.prod(left))).reshape(left), np.arange(float(np.prod(right))).reshape(right) - 3
    found, expected = certen.matmul(a, b), np.matmul(a, b)
    assert np.shape(found) == np.shape(expected)
    np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("left", "right"), [((), (3,)), ((2, 3), (2, 3)), ((2, 1), (3, 4))])
def test_matmul_that_does_not_fit(left, right):
    with pytest.raises(ValueError):
        np.matmul(np.ones(left), np.ones(right))
    with pytest.raises(ValueError):
        certen.matmul(np.ones(left), np.ones(right))


def test_transpose_is_a_view():
    a = np.arange(6.0).reshape(2, 3)
    assert certen.transpose(a).base is a.base
    assert certen.transpose(np.ones((2, 3, 4)), (2, 0, 1)).shape == (4, 2, 3)
