//! `quadrille field`: keys, and errors that prevent a migration. Migrations themselves are tested with real databases
//! by `make test-php`.

use std::{fs, os::unix::fs::PermissionsExt, path::Path, process::Command};

/// Returns the exit status and the output.
fn field(arguments: &[&str]) -> (Option<i32>, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_quadrille"))
        .arg("field")
        .args(arguments)
        .env_remove("QUADRILLE_DATABASE")
        .output()
        .expect("quadrille starts");
    let said = String::from_utf8_lossy(&[output.stdout, output.stderr].concat()).into_owned();
    (output.status.code(), said)
}

#[track_caller]
fn succeeds(arguments: &[&str]) -> String {
    let (status, said) = field(arguments);
    assert_eq!(status, Some(0), "{arguments:?}: {said}");
    said
}

#[track_caller]
fn fails(arguments: &[&str], complaint: &str) {
    let (status, said) = field(arguments);
    assert_eq!(status, Some(2), "{arguments:?}: {said}");
    assert!(said.contains(complaint), "{arguments:?} does not report {complaint}: {said}");
}

fn path(folder: &Path, name: &str) -> String {
    folder.join(name).to_str().expect("UTF-8").to_owned()
}

#[test]
fn the_life_of_keys() {
    let folder = tempfile::tempdir().expect("a folder");
    let file = path(folder.path(), "fields.keys");
    let said = succeeds(&["keygen", &file]);
    let first = said.trim().rsplit(' ').next().expect("an id").to_owned();
    assert_eq!(fs::metadata(&file).expect("metadata").permissions().mode() & 0o777, 0o600);
    fails(&["keygen", &file], "already exists");

    succeeds(&["keygen", "--add", &file]);
    let keys = succeeds(&["keys", &file]);
    let second = keys.lines().nth(1).expect("two keys").split(' ').next().expect("an id").to_owned();
    assert_eq!(keys, format!("{first} active\n{second} decrypt-only\n"));

    fails(&["keygen", "--retire", &first, &file], "activate another");
    succeeds(&["keygen", "--activate", &second, &file]);
    succeeds(&["keygen", "--retire", &first, &file]);
    assert_eq!(succeeds(&["keys", &file]), format!("{first} retired\n{second} active\n"));

    succeeds(&["keygen", "--rotate", &file]);
    let keys = succeeds(&["keys", &file]);
    assert_eq!(keys.matches(" active").count(), 1);
    assert!(keys.contains(&format!("{second} decrypt-only")), "{keys}");
}

#[test]
fn keys_that_are_added_at_the_same_time_are_all_kept() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = path(folder.path(), "fields.keys");
    succeeds(&["keygen", &keys]);
    let add = |_| {
        std::thread::spawn({
            let keys = keys.clone();
            move || succeeds(&["keygen", "--add", &keys])
        })
    };
    let added: Vec<_> = (0..16).map(add).collect();
    let said: Vec<String> = added.into_iter().map(|added| added.join().expect("a key")).collect();
    let text = fs::read_to_string(&keys).expect("the file");
    for line in said {
        let id = line.trim().rsplit(' ').next().expect("the key's ID");
        assert!(text.contains(id), "{id} is lost: {text}");
    }
}

#[test]
fn random_keys() {
    let [a, b] = [(), ()].map(|()| succeeds(&["keygen", "--bytes", "32"]));
    assert_eq!(a.trim().len(), 44);
    assert_ne!(a, b);
    fails(&["keygen", "--bytes", "0"], "1..=4096");
    fails(&["keygen"], "<FILE>");
    fails(&["keygen", "--bytes", "32", "file"], "cannot be used with");
    fails(&["keygen", "--add", "--rotate", "file"], "cannot be used with");
}

#[test]
fn what_keeps_a_migration_from_starting() {
    let folder = tempfile::tempdir().expect("a folder");
    let keys = path(folder.path(), "fields.keys");
    succeeds(&["keygen", &keys]);
    let migrate = |more: &[&str], complaint: &str| {
        let common = ["migrate", "--keys", &keys, "--table", "users", "--column", "name"];
        fails(&[&common[..], more].concat(), complaint);
    };
    let nowhere = "postgresql:///app?host=/nonexistent";
    migrate(&[], "--database");
    migrate(&["--database", "sqlite:app"], "it must begin with mysql:// or postgresql://");
    migrate(&["--database", "mysql://app:secret@db.example.com/app"], "give --unencrypted");
    migrate(&["--database", nowhere, "--from", "legacy"], "--legacy-keys");
    migrate(&["--database", nowhere, "--index", "phone=phone_index:64"], "there is no --column phone");
    migrate(&["--database", nowhere, "--index", "phone"], "TARGET=INDEX:BITS");
    migrate(&["--database", nowhere, "--batch", "0"], "1..=10000");
    migrate(&["--database", nowhere], "the database: ");
    migrate(&["--database", "mysql://root@localhost/app?socket=/nonexistent"], "the database: ");

    let old = path(folder.path(), "old.keys");
    fs::write(&old, "short\nshort\n").expect("writes");
    migrate(&["--database", nowhere, "--from", "legacy", "--legacy-keys", &old], "chmod 600");
    fs::set_permissions(&old, fs::Permissions::from_mode(0o600)).expect("chmod");
    migrate(&["--database", nowhere, "--from", "legacy", "--legacy-keys", &old], "32 bytes in base64");
    migrate(&["--database", nowhere, "--from", "mcrypt"], "--mcrypt");
    migrate(&["--database", nowhere, "--from", "mcrypt", "--mcrypt", &old], "as `mode: cbc`");
    fs::set_permissions(&keys, fs::Permissions::from_mode(0o644)).expect("chmod");
    migrate(&["--database", nowhere], "chmod 600");
}
