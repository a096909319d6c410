//! Driver with this CPU as its device: `tests/fake/cuda.cpp`, built once and loaded as a copy for each test.

#![allow(dead_code, reason = "each test program uses its own part")]

use quadrille_kernels_cuda::Options;
use std::{
    env,
    ffi::{CString, c_char, c_long},
    fs,
    hash::{DefaultHasher, Hash, Hasher},
    path::{Path, PathBuf},
    process::Command,
};

/// Private copy of the driver.
pub(crate) struct Fake {
    folder: tempfile::TempDir,
    library: libloading::Library,
}

impl Fake {
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("libcuda.so.1");
        fs::copy(built(), &path).expect("a copy");
        // SAFETY: its initialisers do nothing.
        let library = unsafe { libloading::Library::new(&path) }.expect("the fake driver can be loaded");
        Self { folder, library }
    }

    /// Options that are the same on every machine, regardless of its cores.
    pub(crate) fn options(&self) -> Options {
        Options {
            library: self.folder().join("libcuda.so.1").into(),
            lanes: 4,
            keys: 64,
            ..Options::default()
        }
    }

    /// Folder of the library: for `LD_LIBRARY_PATH` of a program, with faults given in `FAKE_CUDA`
    /// (`lost_at=5,devices=1`).
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Injects a fault.
    pub(crate) fn set(&self, name: &str, value: i64) {
        let name = CString::new(name).expect("no zero");
        // SAFETY: declared so in cuda.cpp.
        unsafe {
            let set = self.library.get::<unsafe extern "C" fn(*const c_char, c_long)>(b"fake_set\0");
            set.expect("fake_set is exported")(name.as_ptr(), value);
        }
    }

    /// Returns an observation.
    pub(crate) fn get(&self, name: &str) -> i64 {
        let name = CString::new(name).expect("no zero");
        // SAFETY: declared so in cuda.cpp.
        unsafe {
            let get = self.library.get::<unsafe extern "C" fn(*const c_char) -> c_long>(b"fake_get\0");
            get.expect("fake_get is exported")(name.as_ptr())
        }
    }
}

/// Returns the library, compiled if its sources have changed.
fn built() -> PathBuf {
    let home = Path::new("../kernels-cuda");
    let mut hasher = DefaultHasher::new();
    for folder in ["kernel", "tests/fake"] {
        let mut paths: Vec<_> = fs::read_dir(home.join(folder))
            .expect("folder exists")
            .flatten()
            .map(|file| file.path())
            .collect();
        paths.sort();
        paths.iter().for_each(|path| fs::read(path).expect("it can be read").hash(&mut hasher));
    }
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let path = folder.join(format!("libfake-cuda-{:016x}.so", hasher.finish()));
    if !path.exists() {
        // Tests in process namespaces of their own have equal process ids.
        let new = tempfile::NamedTempFile::new_in(folder).expect("a temporary file").into_temp_path();
        let compiler = env::var_os("CXX").unwrap_or_else(|| "c++".into());
        let mut command = Command::new(compiler);
        command.args(["-std=c++17", "-O3", "-Wall", "-Wextra", "-Werror", "-shared", "-fPIC"]);
        if cfg!(target_arch = "x86_64") {
            // Use the features of the machine on which it is built and run.
            command.arg("-march=native");
        }
        let status = command.arg(home.join("tests/fake/cuda.cpp")).arg("-o").arg(&new).status();
        assert!(status.expect("a C++ compiler").success(), "the kernels compile as C++");
        new.persist(&path).expect("it can be renamed");
    }
    path
}
