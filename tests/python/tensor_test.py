"""tandem.Tensor: exchange with NumPy and DLPack without copies."""
import gc
import unittest
import weakref

import numpy as np

import tandem

DTYPES = {"f32": np.float32, "f64": np.float64, "u8": np.uint8, "i32": np.int32, "i64": np.int64}


class Owner(np.ndarray):
    """An array that can be watched."""


class Tensors(unittest.TestCase):
    def test_numpy_shares_memory_both_ways(self):
        for name, dtype in DTYPES.items():
            array = np.arange(24, dtype=dtype).reshape(2, 3, 4)
            tensor = tandem.from_numpy(array)
            self.assertEqual((tensor.shape, tensor.dtype, tensor.device, len(tensor)), ((2, 3, 4), name, "cpu", 2))
            back = np.asarray(tensor)
            self.assertEqual(back.dtype, dtype)
            np.testing.assert_array_equal(back, array)
            array[1, 2, 3] = 77
            self.assertEqual(back[1, 2, 3], 77)
            back[0, 0, 0] = 5
            self.assertEqual(array[0, 0, 0], 5)
            self.assertIn("[2, 3, 4]", repr(tensor))

    def test_dlpack_shares_memory_both_ways(self):
        for dtype in DTYPES.values():
            array = np.arange(6, dtype=dtype).reshape(2, 3)
            tensor = tandem.from_dlpack(array)
            back = np.from_dlpack(tensor)
            array[1, 1] = 9
            self.assertEqual(back[1, 1], 9)
            self.assertEqual(tensor.__dlpack_device__(), (1, 0))

    def test_strides_are_kept(self):
        array = np.arange(60, dtype=np.float32).reshape(3, 4, 5)
        for view in (array.T, array[:, ::2], array[1:, :, 3:], np.broadcast_to(array[0], (2, 4, 5)), array[:0], array[0, 0, 0:1].reshape(())):
            for tensor in (tandem.from_numpy(view), tandem.from_dlpack(view)) if view.flags.writeable else (tandem.from_numpy(view),):
                np.testing.assert_array_equal(tensor.numpy(), view)
                if view.size:
                    self.assertTrue(np.shares_memory(tensor.numpy(), array))

    def test_memory_lives_as_long_as_its_last_user(self):
        for exchange in (tandem.from_numpy, tandem.from_dlpack):
            array = np.arange(5.0).view(Owner)
            gone = weakref.ref(array)
            tensor = exchange(array)
            del array
            gc.collect()
            self.assertIsNotNone(gone())
            back = np.from_dlpack(tensor)
            del tensor
            gc.collect()
            np.testing.assert_array_equal(back, np.arange(5.0))
            del back
            gc.collect()
            self.assertIsNone(gone())
        tandem.from_numpy(np.zeros(3)).__dlpack__()  # a capsule that nobody takes

    def test_bad_input(self):
        array = np.arange(12, dtype=np.float32).reshape(3, 4)
        for bad in (array.astype(np.float16), array.astype(">f4"), array.astype(complex), np.array(["x"]), np.array([object()])):
            with self.assertRaises(TypeError):
                tandem.from_numpy(bad)
        record = np.zeros(4, dtype=[("a", np.uint8), ("b", np.float32)])
        unaligned = np.frombuffer(bytes(17), np.float32, offset=1)
        for bad in (array[::-1], array[:, ::-1], record["b"], unaligned, np.zeros((1,) * 9, np.float32)):
            with self.assertRaises(ValueError):
                tandem.from_numpy(bad)
        for bad in ([1.0, 2.0], None, 7):
            with self.assertRaises(TypeError):
                tandem.from_dlpack(bad)
            with self.assertRaises(TypeError):
                tandem.from_numpy(bad)
        with self.assertRaises(TypeError):
            tandem.from_dlpack(array.astype(np.float16))
        capsule = array.__dlpack__()

        class Twice:
            def __dlpack__(self, stream=None):
                return capsule

            def __dlpack_device__(self):
                return (1, 0)
        tandem.from_dlpack(Twice())
        with self.assertRaises(ValueError):  # it is used up
            tandem.from_dlpack(Twice())
        with self.assertRaises(TypeError):
            len(tandem.from_numpy(np.float32(3).reshape(())))

    def test_read_only_stays_read_only(self):
        array = np.arange(4.0)
        array.flags.writeable = False
        tensor = tandem.from_numpy(array)
        self.assertFalse(tensor.numpy().flags.writeable)
        with self.assertRaises(BufferError):
            tensor.__dlpack__()


if __name__ == "__main__":
    unittest.main()
