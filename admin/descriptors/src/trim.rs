//! Trimming of the descriptor set: removes options, and files that were imported for their options alone.

use prost_types::{
    DescriptorProto, EnumDescriptorProto, EnumOptions, FieldDescriptorProto, FieldOptions,
    FileDescriptorProto, FileDescriptorSet, MessageOptions,
};
use std::collections::BTreeSet;

/// Returns the set with types, fields and numbers only.
pub(crate) fn trimmed(mut set: FileDescriptorSet) -> FileDescriptorSet {
    for file in &mut set.file {
        file.options = None;
        file.source_code_info = None;
        file.service.clear();
        file.extension.clear();
        file.message_type.iter_mut().for_each(strip_message);
        file.enum_type.iter_mut().for_each(strip_enum);
    }
    drop_unused_imports(&mut set);
    let kept = reachable(&set);
    set.file.retain(|file| kept.contains(file.name()));
    set
}

fn strip_message(message: &mut DescriptorProto) {
    // A map is a repeated message with this option; without it, it would be read as a list.
    let map = message.options.as_ref().and_then(|options| options.map_entry);
    message.options = map.map(|map| MessageOptions { map_entry: Some(map), ..MessageOptions::default() });
    message.extension.clear();
    message.reserved_range.clear();
    message.reserved_name.clear();
    message.field.iter_mut().for_each(strip_field);
    message.oneof_decl.iter_mut().for_each(|oneof| oneof.options = None);
    message.nested_type.iter_mut().for_each(strip_message);
    message.enum_type.iter_mut().for_each(strip_enum);
}

fn strip_field(field: &mut FieldDescriptorProto) {
    let packed = field.options.as_ref().and_then(|options| options.packed);
    field.options = packed.map(|packed| FieldOptions { packed: Some(packed), ..FieldOptions::default() });
    field.json_name = None;
}

fn strip_enum(descriptor: &mut EnumDescriptorProto) {
    descriptor.options = descriptor
        .options
        .take()
        .filter(EnumOptions::allow_alias)
        .map(|_| EnumOptions { allow_alias: Some(true), ..EnumOptions::default() });
    descriptor.reserved_range.clear();
    descriptor.reserved_name.clear();
    descriptor.value.iter_mut().for_each(|value| value.options = None);
}

/// Removes imports whose types are not used by any field.
fn drop_unused_imports(set: &mut FileDescriptorSet) {
    let declared: Vec<(String, BTreeSet<String>)> = set
        .file
        .iter()
        .map(|file| {
            let mut names = BTreeSet::new();
            let scope = format!(".{}", file.package());
            file.message_type.iter().for_each(|message| declare(message, &scope, &mut names));
            names.extend(file.enum_type.iter().map(|descriptor| format!("{scope}.{}", descriptor.name())));
            (file.name().to_owned(), names)
        })
        .collect();
    for file in &mut set.file {
        let mut used = BTreeSet::new();
        file.message_type.iter().for_each(|message| types_of(message, &mut used));
        file.public_dependency.clear();
        file.weak_dependency.clear();
        file.dependency.retain(|import| {
            declared.iter().any(|(name, names)| name == import && !names.is_disjoint(&used))
        });
    }
}

fn declare(message: &DescriptorProto, scope: &str, names: &mut BTreeSet<String>) {
    let name = format!("{scope}.{}", message.name());
    message.nested_type.iter().for_each(|nested| declare(nested, &name, names));
    names.extend(message.enum_type.iter().map(|descriptor| format!("{name}.{}", descriptor.name())));
    names.insert(name);
}

fn types_of(message: &DescriptorProto, used: &mut BTreeSet<String>) {
    used.extend(message.field.iter().filter_map(|field| field.type_name.clone()));
    message.nested_type.iter().for_each(|nested| types_of(nested, used));
}

/// Returns the files of the entries and their imports. Files imported for options have no importers left.
fn reachable(set: &FileDescriptorSet) -> BTreeSet<String> {
    let mut kept = BTreeSet::new();
    let mut open: Vec<&str> =
        set.file.iter().map(FileDescriptorProto::name).filter(|name| !only_for_options(name)).collect();
    while let Some(name) = open.pop() {
        if kept.insert(name.to_owned()) {
            let file = set.file.iter().find(|file| file.name() == name);
            open.extend(file.into_iter().flat_map(|file| file.dependency.iter().map(String::as_str)));
        }
    }
    kept
}

fn only_for_options(name: &str) -> bool {
    ["validate/", "udpa/annotations/", "envoy/annotations/", "xds/annotations/", "google/protobuf/descriptor"]
        .iter()
        .any(|start| name.starts_with(start))
}
