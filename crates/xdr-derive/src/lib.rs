//! `#[derive(Encode, Decode)]` for the mechanical nine tenths of the XDR types.
//!
//! **Answers:** how a Rust type is laid out in XDR.
//! - a struct is its fields in order (RFC 4506, 4.14);
//! - an enum whose variants are all `Name = number` is an enumeration (4.3);
//! - an enum whose variants carry `#[xdr(number)]` is a discriminated union (4.15): the number,
//!   then the variant's fields in order.
//!
//! A type that borrows from the record names its lifetime `'a`.
//!
//! **May not know:** any particular protocol.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::{Data, DeriveInput, Error, Expr, Fields, Result, Variant, parse_macro_input};

/// Derives `comity_xdr::Decode`.
#[proc_macro_derive(Decode, attributes(xdr))]
pub fn derive_decode(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    decode_impl(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

/// Derives `comity_xdr::Encode`.
#[proc_macro_derive(Encode, attributes(xdr))]
pub fn derive_encode(input: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    encode_impl(&input).unwrap_or_else(|error| error.to_compile_error()).into()
}

fn decode_impl(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let (_, type_generics, where_clause) = input.generics.split_for_impl();
    let mut generics = input.generics.clone();
    if !generics.lifetimes().any(|l| l.lifetime.ident == "a") {
        generics.params.insert(0, syn::parse_quote!('a));
    }
    let (impl_generics, _, _) = generics.split_for_impl();
    let body = decode_body(input)?;
    Ok(quote! {
        impl #impl_generics ::comity_xdr::Decode<'a> for #name #type_generics #where_clause {
            #[inline]
            fn decode(
                decoder: &mut ::comity_xdr::Decoder<'a>,
            ) -> ::core::result::Result<Self, ::comity_xdr::Malformed> {
                #body
            }
        }
    })
}

fn encode_impl(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let (impl_generics, type_generics, where_clause) = input.generics.split_for_impl();
    let body = encode_body(input)?;
    Ok(quote! {
        impl #impl_generics ::comity_xdr::Encode for #name #type_generics #where_clause {
            #[inline]
            fn encode(&self, encoder: &mut ::comity_xdr::Encoder) {
                #body
            }
        }
    })
}

fn decode_body(input: &DeriveInput) -> Result<TokenStream> {
    let name = &input.ident;
    let text = name.to_string();
    match &input.data {
        Data::Struct(data) => {
            let fields = decode_fields(&data.fields);
            Ok(quote!(Ok(Self #fields)))
        }
        Data::Enum(data) => {
            let arms = data.variants.iter().map(decode_arm).collect::<Result<Vec<_>>>()?;
            Ok(quote! {
                match decoder.value::<u32>()? {
                    #(#arms)*
                    found => Err(::comity_xdr::Malformed::Discriminant { of: #text, found }),
                }
            })
        }
        Data::Union(_) => Err(Error::new_spanned(input, "XDR unions are Rust enums")),
    }
}

fn encode_body(input: &DeriveInput) -> Result<TokenStream> {
    match &input.data {
        Data::Struct(data) => {
            let (pattern, names) = bind_fields(&data.fields);
            Ok(quote! {
                let Self #pattern = self;
                #(encoder.value(#names);)*
            })
        }
        Data::Enum(data) if data.variants.iter().all(|variant| variant.fields.is_empty()) => {
            // One word, whichever it is.
            let arms = data.variants.iter().map(number_arm).collect::<Result<Vec<_>>>()?;
            Ok(quote!(encoder.value::<u32>(&match self { #(#arms)* })))
        }
        Data::Enum(data) => {
            let arms = data.variants.iter().map(encode_arm).collect::<Result<Vec<_>>>()?;
            Ok(quote!(match self { #(#arms)* }))
        }
        Data::Union(_) => Err(Error::new_spanned(input, "XDR unions are Rust enums")),
    }
}

fn decode_arm(variant: &Variant) -> Result<TokenStream> {
    let (name, number) = (&variant.ident, discriminant(variant)?);
    let fields = decode_fields(&variant.fields);
    Ok(quote!(#number => Ok(Self::#name #fields),))
}

fn encode_arm(variant: &Variant) -> Result<TokenStream> {
    let (name, number) = (&variant.ident, discriminant(variant)?);
    let (pattern, names) = bind_fields(&variant.fields);
    Ok(quote! {
        Self::#name #pattern => {
            encoder.value::<u32>(&#number);
            #(encoder.value(#names);)*
        }
    })
}

fn number_arm(variant: &Variant) -> Result<TokenStream> {
    let (name, number) = (&variant.ident, discriminant(variant)?);
    Ok(quote!(Self::#name => #number,))
}

fn decode_fields(fields: &Fields) -> TokenStream {
    match fields {
        Fields::Named(named) => {
            let names = named.named.iter().map(|field| &field.ident);
            quote!({ #(#names: decoder.value()?),* })
        }
        Fields::Unnamed(unnamed) => {
            let values = unnamed.unnamed.iter().map(|_| quote!(decoder.value()?));
            quote!((#(#values),*))
        }
        Fields::Unit => TokenStream::new(),
    }
}

/// A pattern that binds every field, and the names it binds.
fn bind_fields(fields: &Fields) -> (TokenStream, Vec<TokenStream>) {
    match fields {
        Fields::Named(named) => {
            let names: Vec<_> = named.named.iter().map(quote_ident).collect();
            (quote!({ #(#names),* }), names)
        }
        Fields::Unnamed(unnamed) => {
            let name = |at| format_ident!("field_{at}");
            let names: Vec<_> =
                (0..unnamed.unnamed.len()).map(name).map(|name| quote!(#name)).collect();
            (quote!((#(#names),*)), names)
        }
        Fields::Unit => (TokenStream::new(), Vec::new()),
    }
}

fn quote_ident(field: &syn::Field) -> TokenStream {
    let ident = &field.ident;
    quote!(#ident)
}

/// `#[xdr(number)]`, or the `= number` of a variant without fields.
fn discriminant(variant: &Variant) -> Result<Expr> {
    if let Some(attribute) = variant.attrs.iter().find(|a| a.path().is_ident("xdr")) {
        return attribute.parse_args();
    }
    match &variant.discriminant {
        Some((_, number)) => Ok(number.clone()),
        None => Err(Error::new_spanned(variant, "say the number: `#[xdr(7)]` or `Name = 7`")),
    }
}
